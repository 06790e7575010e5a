import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { DType, Shape, Tensor } from '../../../src/index.ts';
import { sample, tensorOf, unitRoundoff } from '../support/samples.ts';
import type { OpenDevice } from '../support/vector-jacobian.ts';

/** Longest chain of additions in one running sum, on either device. */
const chain = 64;

interface LongFold {
  readonly shape: Shape;
  readonly dims: readonly number[];
}

/** Along rows, along columns and in the middle; lengths that pieces divide, and primes. */
const longFolds: readonly LongFold[] = [
  { shape: [300_000], dims: [0] },
  { shape: [99_991], dims: [0] },
  { shape: [7, 20_011], dims: [1] },
  { shape: [40_000, 4], dims: [0] },
  { shape: [20_011, 7], dims: [0] },
  { shape: [4099, 70], dims: [0] },
  { shape: [60_000, 1], dims: [0] },
  { shape: [3, 10_000, 5], dims: [1] },
  { shape: [64, 3, 5, 64], dims: [0, 1, 3] },
  { shape: [40, 1, 3, 1009], dims: [0, 1, 3] },
  { shape: [8, 70_000], dims: [0] },
];

/** Sums over `dims` in float64, in the order of the elements that remain. */
function exactSums(x: Tensor, dims: readonly number[]): number[] {
  const { shape } = x;
  const kept = shape.map((_, d) => d).filter((d) => !dims.includes(d));
  const sums = new Array<number>(t.sizeOf(kept.map((d) => shape[d]!))).fill(0);
  x.toFlatArray().forEach((value, position) => {
    let [rest, at, size] = [position, 0, 1];
    for (let d = shape.length - 1; d >= 0; d--) {
      const index = rest % shape[d]!;
      rest = Math.floor(rest / shape[d]!);
      if (!kept.includes(d)) continue;
      at += index * size;
      size *= shape[d]!;
    }
    sums[at]! += value;
  });
  return sums;
}

/** What sum, mean and max give at the edges and over long dimensions, on one device. */
export function describeReduce(open: OpenDevice): void {
  const of = (values: readonly number[], shape: Shape, dtype: DType = 'float32') =>
    tensorOf(values, shape, dtype, open());
  const int64 = (values: readonly bigint[]) =>
    t.fromTypedArray(BigInt64Array.from(values), [values.length], { device: open() });

  it('of a tensor without dimensions take the dimensions 0 and -1', () => {
    t.scope(() => {
      const x = of([5], []).requiresGrad_();
      for (const fold of [t.sum, t.mean, t.max, t.min]) {
        for (const dims of [0, -1, [0]]) {
          const y = fold(x, { dims, keepDims: true });
          expect([y.shape, y.item()]).toEqual([[], 5]);
        }
        expect(() => fold(x, { dims: 1 })).toThrow(t.ShapeError);
      }
      t.mul(t.sum(x, { dims: 0 }), 3).backward();
      expect(x.grad!.item()).toBe(3);
      for (const fold of [t.any, t.all]) expect(fold(x.detach(), { dims: -1 }).item()).toBe(1);
      for (const fold of [t.variance, t.std])
        expect(fold(x.detach(), { dims: 0, correction: 0 }).item()).toBe(0);
    });
  });

  describe('long folds', () => {
    it.each(longFolds)('of $shape over $dims round as pairwise summation does', ({ shape, dims }) => {
      t.scope(() => {
        const x = sample(shape, { domain: [0, 1], seed: 41 }, open());
        const exact = exactSums(x, dims);
        const count = t.sizeOf(shape) / exact.length;
        // In each chain rounding errors walk at random.
        const levels = Math.ceil(Math.log(count) / Math.log(chain));
        const bound = Math.sqrt(chain * levels) * unitRoundoff.float32!;
        const [sums, means] = [t.sum(x, { dims }).toFlatArray(), t.mean(x, { dims }).toFlatArray()];
        exact.forEach((sum, i) => {
          expect(Math.abs(sums[i]! / sum - 1)).toBeLessThanOrEqual(bound);
          expect(Math.abs(means[i]! / (sum / count) - 1)).toBeLessThanOrEqual(bound + unitRoundoff.float32!);
        });
      });
    });

    it('carry Infinity and NaN', () => {
      t.scope(() => {
        const values = new Array<number>(5000).fill(1);
        values[4321] = Infinity;
        expect(t.sum(of(values, [5000])).item()).toBe(Infinity);
        expect(t.sum(of(values, [1000, 5]), { dims: 0 }).toFlatArray()).toEqual([
          1000,
          Infinity,
          1000,
          1000,
          1000,
        ]);
        values[17] = -Infinity;
        expect(t.sum(of(values, [5000])).item()).toBeNaN();
        expect(t.sum(of(values, [1000, 5]), { dims: 0 }).toFlatArray()).toEqual([
          1000,
          Infinity,
          -Infinity,
          1000,
          1000,
        ]);
      });
    });

    it('read strided and repeated elements', () => {
      t.scope(() => {
        const x = sample([70, 90, 3], { domain: [0, 1], seed: 42 }, open());
        for (const view of [
          t.transpose(x, 0, 1),
          t.slice(x, 1, 3, 80, 2),
          t.expand(t.slice(x, 0, 1, 2), [70, 90, 3]),
        ]) {
          const exact = exactSums(t.contiguous(view), [0, 1]);
          t.sum(view, { dims: [0, 1] })
            .toFlatArray()
            .forEach((sum, i) => expect(Math.abs(sum / exact[i]! - 1)).toBeLessThanOrEqual(2 ** -20));
        }
      });
    });
  });

  describe('of nothing', () => {
    const empty = (shape: Shape, dtype: DType = 'float32') => t.zeros(shape, { dtype, device: open() });

    it.each(['float32', 'float64', 'bfloat16', 'int64'] as const)('sum is 0 and mean NaN in %s', (dtype) => {
      t.scope(() => {
        expect(t.sum(empty([0], dtype)).item()).toBe(0);
        expect(t.mean(empty([0], dtype)).item()).toBeNaN();
        expect(t.sum(empty([2, 0], dtype), { dims: 1 }).toFlatArray()).toEqual([0, 0]);
        expect(t.mean(empty([2, 0, 3], dtype), { dims: [0, 1] }).toFlatArray()).toEqual([NaN, NaN, NaN]);
      });
    });

    it('max is an error that names the dimension', () => {
      t.scope(() => {
        expect(() => t.max(empty([0]))).toThrow(t.ShapeError);
        expect(() => t.max(empty([2, 0]), { dims: 1 })).toThrow('max: dimension 1 of [2, 0] has no elements');
        expect(() => t.max(empty([2, 0], 'int64'))).toThrow('max: dimension 1 of [2, 0] has no elements');
      });
    });

    it('gives nothing where another dimension is empty', () => {
      t.scope(() => {
        for (const fold of [t.sum, t.mean, t.max]) {
          const y = fold(empty([3, 0, 2]), { dims: 0 });
          expect(y.shape).toEqual([0, 2]);
          expect(y.toFlatArray()).toEqual([]);
        }
      });
    });

    it('has an empty gradient', () => {
      t.scope(() => {
        for (const fold of [t.sum, t.mean]) {
          const x = empty([2, 0]).requiresGrad_();
          t.sum(fold(x, { dims: 1 })).backward();
          expect(x.grad!.shape).toEqual([2, 0]);
        }
      });
    });
  });

  describe('of integers and bool', () => {
    it('sums int64 exactly, and wraps around', () => {
      t.scope(() => {
        const large = 2n ** 53n;
        expect(t.sum(int64([large, 1n, 1n, 1n])).toTypedArray()).toEqual(BigInt64Array.of(large + 3n));
        expect(t.sum(int64([2n ** 63n - 1n, 2n])).toTypedArray()).toEqual(
          BigInt64Array.of(-(2n ** 63n) + 1n),
        );
        const long = Array.from({ length: 3000 }, (_, i) => large + BigInt(i));
        expect(t.sum(int64(long)).toTypedArray()).toEqual(BigInt64Array.of(3000n * large + 4_498_500n));
        const columns = t.sum(t.reshape(int64(long), [1000, 3]), { dims: 0 });
        expect(columns.toTypedArray()).toEqual(
          BigInt64Array.from([0n, 1n, 2n], (j) => 1000n * large + 1_498_500n + 1000n * j),
        );
      });
    });

    it('sums int32 and bool as int64', () => {
      t.scope(() => {
        const total = t.sum(of([2 ** 31 - 1, 2 ** 31 - 1, 5], [3], 'int32'));
        expect([total.dtype, total.item()]).toEqual(['int64', 2 ** 32 + 3]);
        const count = t.sum(of([1, 0, 1, 1], [2, 2], 'bool'), { dims: 1 });
        expect([count.dtype, count.toFlatArray()]).toEqual(['int64', [1, 2]]);
        const whole = t.sum(of([1, 1], [2], 'bool'), { dims: [] });
        expect([whole.dtype, whole.toFlatArray()]).toEqual(['int64', [1, 1]]);
      });
    });

    it('takes means of integers before it rounds', () => {
      t.scope(() => {
        const means = [of([2 ** 24 + 1, -(2 ** 24)], [2], 'int32'), int64([2n ** 24n + 1n, -(2n ** 24n)])];
        for (const x of means) {
          const y = t.mean(x);
          expect([y.dtype, y.item()]).toEqual(['float32', 0.5]);
        }
        expect(t.mean(of([1, 1, 0, 0], [4], 'bool')).item()).toBe(0.5);
      });
    });

    it('takes the largest integer and bool', () => {
      t.scope(() => {
        expect(t.max(int64([-(2n ** 63n), 2n ** 53n + 1n, 2n ** 53n])).toTypedArray()).toEqual(
          BigInt64Array.of(2n ** 53n + 1n),
        );
        expect(t.max(of([-5, -3, -4], [3], 'int32')).item()).toBe(-3);
        const largest = t.max(of([0, 0, 1, 0], [2, 2], 'bool'), { dims: 1 });
        expect([largest.dtype, largest.toFlatArray()]).toEqual(['bool', [0, 1]]);
      });
    });
  });

  describe('the gradient of max', () => {
    it('is shared evenly by equal maxima, as that of torch.amax', () => {
      t.scope(() => {
        const x = of([3, 1, 3, 3, 2, 5], [2, 3]).requiresGrad_();
        t.max(x, { dims: 1 }).backward(of([1, 10], [2]));
        expect(x.grad!.toFlatArray()).toEqual([0.5, 0, 0.5, 0, 0, 10]);
        const y = of([4, 4, 4, 4], [2, 2]).requiresGrad_();
        t.max(y).backward();
        expect(y.grad!.toFlatArray()).toEqual([0.25, 0.25, 0.25, 0.25]);
        const z = of([1, 2, 1, 0], [2, 2]).requiresGrad_();
        t.max(z, { dims: 0, keepDims: true }).backward(of([4, 8], [1, 2]));
        expect(z.grad!.toFlatArray()).toEqual([2, 8, 2, 0]);
      });
    });
  });

  it('the gradient of mean divides by what was folded', () => {
    t.scope(() => {
      const x = sample([4, 5], {}, open()).requiresGrad_();
      t.mean(x, { dims: 0 }).backward(of([4, 8, 12, 16, 20], [5]));
      expect(x.grad!.toFlatArray()).toEqual([1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5]);
    });
  });
}
