import { describe, expect, it } from 'vitest';
import { computeDType } from '../../../../src/base/dtype.ts';
import * as t from '../../../../src/index.ts';
import type { DType, Shape, Tensor } from '../../../../src/index.ts';
import {
  type PointwiseSignature,
  densePointwiseSource,
  inputsRead,
  stridedPointwiseSource,
  vectorLengthOf,
} from '../../../../src/backends/cuda/generated/pointwise-kernel.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../../src/testing/emulated-device.ts';

describe('inputsRead', () => {
  it('finds inputs among functions and scalars', () => {
    expect(inputsRead(['a + exp(c)', 's0'], 4)).toEqual([0, 2]);
    expect(inputsRead(['s0'], 2)).toEqual([]);
    expect(inputsRead(['abs(b) * 1e5'], 2)).toEqual([1]);
  });
});

describe('vectorLengthOf', () => {
  it('fills 16 bytes of the widest type', () => {
    expect(vectorLengthOf(['float32', 'bfloat16'])).toBe(4);
    expect(vectorLengthOf(['bfloat16', 'bfloat16'])).toBe(8);
    expect(vectorLengthOf(['bool'])).toBe(16);
    expect(vectorLengthOf(['int64', 'bool'])).toBe(2);
  });
});

describe('generated sources', () => {
  const signature: PointwiseSignature = {
    name: 'pointwise_mix',
    inputs: ['bfloat16', 'float32', 'bool'],
    outputs: ['bfloat16', 'bool'],
    expressions: ['a * b + s0', 'c'],
    scalars: 1,
  };

  it('calculate in the promoted type', () => {
    expect(computeDType(signature.inputs, signature.outputs)).toBe('float32');
    const source = densePointwiseSource(signature, [0, 1, 2], new Set([1]), 4);
    expect(source).toContain('using Compute = float;');
    expect(source).toContain('const Compute b = convert<Compute>(in1[0]);');
    expect(source).toContain('y1 = convert<bool8>(c);');
  });

  it('use 64-bit offsets only where asked', () => {
    const walk = { rank: 2, vectorLength: 1, broadcast: new Set<number>() };
    expect(stridedPointwiseSource(signature, [0, 1, 2], { ...walk, wide: true })).toContain(
      'using Index = int64;',
    );
    expect(stridedPointwiseSource(signature, [0, 1, 2], { ...walk, wide: false })).toContain('__umulhi');
  });
});

const twoOutputs = t.defineOp({
  name: 'sum and difference',
  autocast: 'none',
  infer: ([a]) => [a!, { shape: a!.shape, dtype: 'float32' }],
  cuda: { kind: 'pointwise', expressions: () => ['a + b', 'a - b'] },
  cpu: { kind: 'host', run: () => undefined },
});

describe.skipIf(!hostCompilerVersion())('PointwiseRunner, emulated', () => {
  const device = openEmulatedDevice();
  const make = (shape: Shape, dtype: DType = 'float32'): Tensor =>
    t.cast(t.reshape(t.arange(0, t.sizeOf(shape), 1, { device, dtype: 'float32' }), shape), dtype);

  it.each([1, 2, 3, 4, 5, 255, 256, 1023, 1024, 4099, 40_000])('adds %i elements, tails included', (size) => {
    t.scope(() => {
      const x = make([size]);
      expect(t.add(x, x).toFlatArray()).toEqual(Array.from({ length: size }, (_, i) => 2 * i));
    });
  });

  it('reads from addresses that are not aligned to vectors', () => {
    t.scope(() => {
      const x = t.slice(make([40]), 0, 3, 36);
      expect(x.isContiguous).toBe(true);
      expect(t.mul(x, 2).toFlatArray()).toEqual(Array.from({ length: 33 }, (_, i) => 2 * (i + 3)));
    });
  });

  it.each(['float32', 'float16', 'bfloat16', 'float64', 'int32', 'int64'] as const)(
    'takes numbers with %s',
    (dtype) => {
      t.scope(() => {
        expect(t.add(make([10], dtype), 3).toFlatArray()).toEqual([3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        expect(t.sub(2, make([3], dtype)).toFlatArray()).toEqual([2, 1, 0]);
      });
    },
  );

  it('repeats a tensor of one element', () => {
    t.scope(() => {
      const one = t.full([1, 1], 5, { device });
      expect(t.mul(make([2, 9]), one).toFlatArray()).toEqual(Array.from({ length: 18 }, (_, i) => 5 * i));
      expect(t.sub(one, make([2])).toFlatArray()).toEqual([5, 4]);
    });
  });

  it('mixes dtypes', () => {
    t.scope(() => {
      const y = t.add(make([5], 'bfloat16'), make([5], 'float32'));
      expect([y.dtype, y.toFlatArray()]).toEqual(['float32', [0, 2, 4, 6, 8]]);
      const z = t.where(t.greater(make([5]), 2), make([5], 'int64'), 7);
      expect([z.dtype, z.toFlatArray()]).toEqual(['int64', [7, 7, 7, 3, 4]]);
    });
  });

  it('writes several outputs', () => {
    t.scope(() => {
      const [sum, difference] = t.apply(twoOutputs, [make([6]), t.full([6], 2, { device })], undefined);
      expect(sum!.toFlatArray()).toEqual([2, 3, 4, 5, 6, 7]);
      expect(difference!.toFlatArray()).toEqual([-2, -1, 0, 1, 2, 3]);
    });
  });

  it('walks 16 dimensions that do not merge', () => {
    t.scope(() => {
      const shape = Array.from({ length: 16 }, () => 2);
      const x = make(shape);
      const reversed = t.permute(x, [...shape.keys()].toReversed());
      const flipped = (i: number) => parseInt([...i.toString(2).padStart(16, '0')].toReversed().join(''), 2);
      const expected = Array.from({ length: 2 ** 16 }, (_, i) => i + flipped(i));
      expect(t.add(x, reversed).toFlatArray()).toEqual(expected);
    });
  });

  it('broadcasts rows, columns and both', () => {
    t.scope(() => {
      const [row, column] = [make([8]), make([3, 1])];
      const at = (f: (i: number, j: number) => number) =>
        Array.from({ length: 24 }, (_, k) => f(Math.floor(k / 8), k % 8));
      expect(t.add(make([3, 8]), row).toFlatArray()).toEqual(at((i, j) => 8 * i + 2 * j));
      expect(t.add(make([3, 8]), column).toFlatArray()).toEqual(at((i, j) => 9 * i + j));
      expect(t.sub(column, row).toFlatArray()).toEqual(at((i, j) => i - j));
    });
  });

  it.each([
    [
      [2, 3, 5, 8],
      [0, 2, 1, 3],
    ],
    [
      [2, 3, 5, 7],
      [0, 2, 1, 3],
    ],
    [
      [2, 3, 5, 8],
      [3, 2, 1, 0],
    ],
    [
      [4, 6],
      [1, 0],
    ],
  ] as const)('copies %j permuted by %j', (shape, order) => {
    t.scope(() => {
      const x = make(shape);
      const y = t.contiguous(t.permute(x, order));
      const strides = order.map((d) => x.strides[d]!);
      const expected = Array.from({ length: x.size }, (_, flat) => {
        let [rest, offset] = [flat, 0];
        for (let d = y.rank - 1; d >= 0; d--) {
          offset += (rest % y.shape[d]!) * strides[d]!;
          rest = Math.floor(rest / y.shape[d]!);
        }
        return offset;
      });
      expect(y.toFlatArray()).toEqual(expected);
    });
  });

  it('writes in place, into views too', () => {
    t.scope(() => {
      const x = t.zeros([4, 5], { device });
      t.addInPlace(t.slice(x, 1, 1, 4), t.ones([4, 3], { device }));
      t.fillInPlace(t.slice(x, 0, 3, 4), 7);
      expect(x.toFlatArray()).toEqual([0, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 0, 7, 7, 7, 7, 7]);
      t.copyInPlace(t.transpose(x), make([5, 4]));
      expect(x.toFlatArray().slice(0, 5)).toEqual([0, 4, 8, 12, 16]);
    });
  });

  it('gives bool as 0 or 1', () => {
    t.scope(() => {
      const x = t.cast(t.fromTypedArray(Uint8Array.from([0, 2, 1]), [3], { dtype: 'bool', device }), 'int32');
      expect(x.toFlatArray()).toEqual([0, 1, 1]);
      expect(t.logicalNot(t.cast(x, 'bool')).toFlatArray()).toEqual([1, 0, 0]);
    });
  });

  it('does nothing for empty tensors', () => {
    t.scope(() => expect(t.add(t.zeros([0, 3], { device }), 1).shape).toEqual([0, 3]));
  });
});
