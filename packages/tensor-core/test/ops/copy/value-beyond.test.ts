import { describe, expect, it } from 'vitest';
import { type Device, compile, device, mul, randn, tensor, transpose } from '../../../src/index.ts';
import { valueBeyond } from '../../../src/ops/copy/value-beyond.ts';
import type { DType } from '../../../src/base/dtype.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../src/testing.ts';

const largest = 2 ** 127 * (2 - 2 ** -23);
/** The first number that float32 rounds to Infinity. */
const beyond = 2 ** 127 * (2 - 2 ** -24);

function describeValues(at: Device): void {
  it.each<[from: DType, to: DType, values: number[], found: number | null]>([
    ['float64', 'float32', [1, NaN, Infinity, -Infinity, largest, -largest, 1e-300], null],
    ['float64', 'float32', [NaN, Infinity, -beyond, 1e300], -beyond],
    ['float64', 'float32', [1, 1e300], 1e300],
    ['float64', 'bfloat16', [2 ** 127 * 1.9921875, 2 ** 127 * 1.998046875], 2 ** 127 * 1.998046875],
    ['float32', 'bfloat16', [largest], largest],
    ['float32', 'float16', [65504, 65519, -65520], -65520],
    ['bfloat16', 'float16', [1, 65536], 65536],
    ['float16', 'bfloat16', [65504], null],
    ['float32', 'float64', [largest], null],
    ['int64', 'int32', [2 ** 31 - 1, -(2 ** 31)], null],
    ['int64', 'int32', [7, 2 ** 31], 2 ** 31],
    ['int64', 'bool', [0, 1], null],
    ['int32', 'bool', [0, 1, 2], 2],
    ['bool', 'int32', [1], null],
    ['float64', 'float32', [], null],
  ])('%s in %s: of %j it is %d', (from, to, values, found) => {
    expect(valueBeyond(tensor(values, { dtype: from, device: at }), to)).toBe(found);
  });

  it("is the first in order, whatever the tensor's layout", () => {
    const x = tensor([[1, 1e300], [1e301, 2]], { dtype: 'float64', device: at }); // prettier-ignore
    expect(valueBeyond(x, 'float32')).toBe(1e300);
    expect(valueBeyond(transpose(x, 0, 1), 'float32')).toBe(1e301);
  });

  it('leaves nothing behind', () => {
    const x = tensor([1e300], { dtype: 'float64', device: at, requiresGrad: true });
    const { liveStorages } = at.memoryStatistics();
    valueBeyond(x, 'float32');
    expect(at.memoryStatistics().liveStorages).toBe(liveStorages);
  });
}

describe('the first value beyond a dtype', () => {
  describe('on the CPU', () => describeValues(device('cpu')));
  describe.skipIf(!hostCompilerVersion())('on the emulated GPU (needs g++)', () =>
    describeValues(openEmulatedDevice()),
  );

  it('is looked for in a compiled function only where there may be one', () => {
    const x = randn([2]);
    const look = (to: DType) => compile(() => [mul(x, valueBeyond(x, to) ?? 0)])();
    expect(look('float64')[0]!.toFlatArray().map(Math.abs)).toEqual([0, 0]);
    expect(() => look('float16')).toThrow(/the host reads a tensor/);
  });
});
