import { describe, expect, it } from 'vitest';
import { CudaDriver, type DriverFunctions } from '../../src/driver/driver.ts';
import { type TensorMapDescription, TensorMapEncoder } from '../../src/launch/tensor-map.ts';
import { ffi } from '../../src/base/host/ffi.ts';
import { HostMemory } from '../../src/base/host/host-memory.ts';

const description: TensorMapDescription = {
  dtype: 'bfloat16',
  address: 0x7f00_0000_1000,
  dimensions: [4096, 300, 7],
  strideBytes: [8192, 8192 * 300],
  box: [64, 128, 1],
};

/** What cuTensorMapEncodeTiled got, its arrays read. */
function encode(changes: Partial<TensorMapDescription> = {}, byteOffset = 0, result = 0) {
  const to = new HostMemory(256);
  const calls: object[] = [];
  const longs = (address: number, count: number) =>
    [...new BigUint64Array(ffi().view(address, 64)).slice(0, count)].map(Number);
  const words = (address: number, count: number) => [
    ...new Uint32Array(ffi().view(address, 64)).slice(0, count),
  ];
  const functions = {
    cuTensorMapEncodeTiled: (
      ...[map, dtype, rank, address, dims, strides, box, steps, ...modes]: number[]
    ) => {
      calls.push({
        ...{ offset: map! - to.address, dtype, rank, address, modes },
        ...{ dimensions: longs(dims!, rank!), strideBytes: longs(strides!, rank! - 1) },
        ...{ box: words(box!, rank!), steps: words(steps!, rank!) },
      });
      return result;
    },
  };
  const driver = new CudaDriver(functions as unknown as DriverFunctions, (status) => `CUresult ${status}`);
  new TensorMapEncoder(driver).encode({ ...description, ...changes }, to, byteOffset);
  return calls[0];
}

describe('TensorMapEncoder', () => {
  it('passes lengths, strides, the box and the modes', () => {
    expect(encode({}, 128)).toEqual({
      ...{ offset: 128, dtype: 9, rank: 3, address: 0x7f00_0000_1000, modes: [0, 0, 0, 0] },
      ...{ dimensions: [4096, 300, 7], strideBytes: [8192, 8192 * 300], box: [64, 128, 1], steps: [1, 1, 1] },
    });
    const modes = {
      swizzle: '128B',
      l2Promotion: '256B',
      outside: 'nan',
      elementStrides: [1, 2, 8],
    } as const;
    expect(encode(modes)).toMatchObject({ modes: [0, 3, 3, 1], steps: [1, 2, 8] });
    expect(encode({ swizzle: '32B', box: [16, 1, 1], l2Promotion: '64B' })).toMatchObject({
      modes: [0, 1, 1, 0],
    });
  });

  it('takes five dimensions and lengths above 32 bits', () => {
    const five = {
      dimensions: [2 ** 32, 2, 3, 4, 5],
      strideBytes: [2 ** 33, 2 ** 34, 2 ** 36, 2 ** 39],
      box: [256, 1, 1, 1, 1],
    };
    expect(encode(five)).toMatchObject({ ...five, rank: 5 });
    expect(encode({ dimensions: [9], strideBytes: [], box: [8] })).toMatchObject({
      rank: 1,
      strideBytes: [],
    });
  });

  it.each([
    [{ dtype: 'float16' }, 6],
    [{ dtype: 'float32', box: [4, 1, 1] }, 7],
    [{ dtype: 'float64', box: [2, 1, 1] }, 8],
    [{ dtype: 'int32', box: [4, 1, 1] }, 3],
    [{ dtype: 'int64', box: [2, 1, 1] }, 5],
    [{ dtype: 'bool', box: [16, 1, 1] }, 0],
  ] as const)('names the type of %j', (changes, dtype) => {
    expect(encode(changes)).toMatchObject({ dtype });
  });

  it.each<[string, Partial<TensorMapDescription>, RegExp]>([
    ['no dimensions', { dimensions: [], strideBytes: [], box: [] }, /1 to 5 dimensions, not 0/],
    ['six dimensions', { dimensions: [1, 1, 1, 1, 1, 1] }, /not 6/],
    ['an address that is not aligned', { address: 0x1008 }, /address 4104 must be a multiple of 16/],
    ['no address', { address: 0 }, /address 0/],
    ['a length of zero', { dimensions: [4096, 0, 7] }, /dimensions \[4096, 0, 7\].* from 1 to/],
    ['a length above 2^32', { dimensions: [2 ** 32 + 1, 1, 1] }, /dimensions/],
    [
      'a stride that is not aligned',
      { strideBytes: [8200, 16] },
      /strideBytes \[8200, 16\] must be multiples of 16/,
    ],
    ['a stride too long', { strideBytes: [16, 2 ** 40] }, /strideBytes/],
    ['a missing stride', { strideBytes: [16] }, /strideBytes \[16\] must have 2 entries/],
    ['a box too large', { box: [64, 257, 1] }, /box \[64, 257, 1\].* from 1 to 256/],
    ['a box of no whole number', { box: [64, 1.5, 1] }, /box/],
    ['a box of too few bytes', { box: [4, 1, 1] }, /8 bytes.*multiple of 16/],
    ['a box wider than the swizzle', { box: [128, 1, 1], swizzle: '128B' }, /256 bytes.*swizzle of 128B/],
    ['steps above 8', { elementStrides: [1, 9, 1] }, /elementStrides/],
  ])('refuses %s', (_, changes, message) => {
    expect(() => encode(changes)).toThrow(message);
  });

  it('refuses a place that is not aligned, and tells what the driver says', () => {
    expect(() => encode({}, 32)).toThrow(/multiple of 64 bytes, not 32/);
    expect(() => encode({}, 0, 1)).toThrow(/cuTensorMapEncodeTiled failed: CUresult 1/);
  });
});
