import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import { sample, tensorOf } from '../support/samples.ts';
import { type OpenDevice, expectFiniteDifferences } from '../support/vector-jacobian.ts';

/** Makes tensors of one dimension. */
const rowsOn =
  (open: OpenDevice) =>
  (values: number[], dtype: t.DType = 'float32') =>
    tensorOf(values, [values.length], dtype, open());

/** clamp, abs and sign, beyond the cases that they share with every element-wise op, on one device. */
export function describeClamp(open: OpenDevice): void {
  const row = rowsOn(open);

  describe('clamp', () => {
    it('takes tensors for bounds, with broadcasting', () => {
      t.scope(() => {
        const x = sample([3, 4], { seed: 81 }, open());
        const low = sample([3, 1], { domain: [-2, 0], seed: 82 }, open());
        const high = sample([2, 1, 4], { domain: [0, 2], seed: 83 }, open());
        const y = t.clamp(x, { min: low, max: high });
        expect(y.shape).toEqual([2, 3, 4]);
        const [a, b, c] = [x, low, high].map((tensor) => tensor.toFlatArray());
        expect(y.toFlatArray()).toEqual(
          Array.from({ length: 24 }, (_, i) => {
            const [outer, column, line] = [Math.floor(i / 12), i % 4, Math.floor(i / 4) % 3];
            return Math.min(Math.max(a![i % 12]!, b![line]!), c![outer * 4 + column]!);
          }),
        );
      });
    });

    it('lets the upper bound win where they cross, and NaN always', () => {
      t.scope(() => {
        expect(t.clamp(row([1, 5]), { min: 3, max: 2 }).toArray()).toEqual([2, 2]);
        expect(t.clamp(row([1, 5]), { min: row([3, 3]), max: row([2, 2]) }).toArray()).toEqual([2, 2]);
        expect(t.clamp(row([NaN, 0]), { min: 1, max: 2 }).toArray()).toEqual([NaN, 1]);
        expect(t.clamp(row([1, 5]), { min: NaN, max: 2 }).toArray()).toEqual([NaN, NaN]);
        expect(t.clamp(row([1, 5]), { max: NaN }).toArray()).toEqual([NaN, NaN]);
        expect(t.clamp(row([1, 5]), { min: row([NaN, 0]) }).toArray()).toEqual([NaN, 5]);
        expect(t.clamp(row([-Infinity, Infinity]), { min: -1, max: 1 }).toArray()).toEqual([-1, 1]);
      });
    });

    it('is of the dtype that its operands promote to', () => {
      t.scope(() => {
        const whole = row([1, 5, 9], 'int64');
        expect(t.clamp(whole, { min: 2, max: 6 }).toTypedArray()).toEqual(BigInt64Array.of(2n, 5n, 6n));
        const fraction = t.clamp(whole, { max: 5.5 });
        expect([fraction.dtype, fraction.toArray()]).toEqual(['float32', [1, 5, 5.5]]);
        expect(t.clamp(row([1], 'float16'), { min: 0.5 }).dtype).toBe('float16');
        expect(t.clamp(row([1], 'float16'), { min: row([0.5]) }).dtype).toBe('float32');
        expect(t.clamp(row([0, 1], 'bool'), { min: 1 }).toTypedArray()).toEqual(BigInt64Array.of(1n, 1n));
        expect(() => t.clamp(row([1], 'bool'), { min: row([1], 'bool') })).toThrow(
          'clamp: bools have no order',
        );
      });
    });

    it('lets bounds without dimensions decide the category alone, and rounds them first', () => {
      t.scope(() => {
        const scalar = (value: number, dtype: t.DType) => tensorOf([value], [], dtype, open());
        const x = row([0.1, 5]);
        const raised = t.clamp(x, { min: scalar(0.3, 'float64'), max: scalar(3, 'float16') });
        expect([raised.dtype, raised.toArray()]).toEqual(['float32', [Math.fround(0.3), 3]]);
        expect(t.clamp(scalar(1, 'float64'), { max: row([0.5, 2], 'float16') }).dtype).toBe('float16');
        expect(t.clamp(row([1], 'int32'), { min: scalar(2, 'int64'), max: 3 }).dtype).toBe('int32');
        const widest = { min: scalar(1, 'float32'), max: scalar(2, 'float64') };
        expect(t.clamp(row([1], 'int32'), widest).dtype).toBe('float64');
        // As PyTorch's cast to int32 wraps it around.
        const wrapped = t.clamp(row([-5, 7], 'int32'), { min: scalar(2 ** 33 + 1, 'int64') });
        expect(wrapped.toArray()).toEqual([1, 7]);
      });
    });

    it('names what it does not take', () => {
      t.scope(() => {
        expect(() => t.clamp(row([1]), {})).toThrow('clamp: takes a bound at least');
        expect(() => t.clamp(row([1]), { low: 1 } as never)).toThrow('clamp: there is no option "low"');
        expect(() => t.clamp(row([1, 2]), { min: row([1, 2, 3]) })).toThrow('clamp: shapes [2] and [3]');
      });
    });
  });

  describe('abs', () => {
    it('is of zeros, infinities, NaN and integers', () => {
      t.scope(() => {
        expect(t.abs(row([-0, -Infinity, NaN, -1e-40])).toArray()).toEqual(
          [0, Infinity, NaN, 1e-40].map(Math.fround),
        );
        const wide = BigInt64Array.of(-(2n ** 62n) - 1n, 3n);
        expect(t.abs(t.fromTypedArray(wide, [2], { device: open() })).toTypedArray()).toEqual(
          BigInt64Array.of(2n ** 62n + 1n, 3n),
        );
        expect(() => t.abs(row([1], 'bool'))).toThrow('abs: a bool has no magnitude');
      });
    });

    it('has the gradient 0 at 0 and at NaN', () => {
      t.scope(() => {
        const x = row([0, -0, NaN, -2, 3]).requiresGrad_();
        t.sum(t.abs(x)).backward();
        expect(x.grad!.toArray()).toEqual([0, 0, 0, -1, 1]);
      });
    });
  });

  describe('sign', () => {
    it('is 0 of zeros and NaN', () => {
      t.scope(() => {
        expect(t.sign(row([0, -0, NaN, -Infinity, 1e-40])).toArray()).toEqual([0, 0, 0, -1, 1]);
        expect(t.sign(row([-7, 0, 2 ** 30], 'int64')).toTypedArray()).toEqual(BigInt64Array.of(-1n, 0n, 1n));
        const bools = t.sign(row([0, 1], 'bool'));
        expect([bools.dtype, bools.toArray()]).toEqual(['bool', [0, 1]]);
      });
    });

    it('has the gradient 0', () => {
      t.scope(() => {
        const x = row([-1, NaN, 2]).requiresGrad_();
        t.sign(x).backward(row([1, Infinity, NaN]));
        expect(x.grad!.toArray()).toEqual([0, 0, 0]);
      });
    });
  });
}

/** The gradients of clamp on its bounds, and finite differences of its tensors in float64. */
export function describeClampGradients(open: OpenDevice): void {
  const row = rowsOn(open);

  it('clamp keeps the gradient inside the bounds and on them, and gives a tensor its own', () => {
    t.scope(() => {
      const x = row([1, 2, NaN, 0, 3, 1.5, 5]).requiresGrad_();
      const low = row([1, 1, 1, 1, 1, 1, 4]).requiresGrad_();
      const high = row([2, 2, 2, 2, 2, 2, 2]).requiresGrad_();
      t.clamp(x, { min: low, max: high }).backward(t.ones([7], { device: open() }));
      expect(x.grad!.toArray()).toEqual([1, 1, 0, 0, 0, 1, 0]);
      expect(low.grad!.toArray()).toEqual([0, 0, 0, 1, 0, 0, 0]);
      expect(high.grad!.toArray()).toEqual([0, 0, 0, 0, 1, 0, 1]);
      // Below both: the upper bound is the result.
      const [y, bottom, top] = [row([1]), row([4]), row([2])].map((leaf) => leaf.requiresGrad_());
      t.clamp(y!, { min: bottom!, max: top! }).backward();
      expect([y!, bottom!, top!].map((leaf) => leaf.grad!.item())).toEqual([0, 0, 1]);
    });
  });

  it('clamp has the gradients that finite differences show', () => {
    t.scope(() => {
      const x = sample([3, 4], { dtype: 'float64', seed: 84 }, open());
      const low = sample([4], { dtype: 'float64', domain: [-2, 1], seed: 85 }, open());
      const high = sample([3, 1], { dtype: 'float64', domain: [-1, 2], seed: 86 }, open());
      expectFiniteDifferences((a, b, c) => t.clamp(a, { min: b, max: c }), [x, low, high]);
      expectFiniteDifferences((a, b) => t.clamp(a, { min: -1, max: b }), [x, high]);
      expectFiniteDifferences((a, b) => t.clamp(a, { min: b, max: 1.5 }), [x, low]);
      expectFiniteDifferences((a, b) => t.clamp(a, { max: b }), [x, high]);
      expectFiniteDifferences((a, b) => t.clamp(a, { min: b }), [x, low]);
    });
  });
}
