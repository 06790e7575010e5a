import { expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { Shape } from '../../../src/index.ts';
import { lineShapes, linesOf } from '../support/lines.ts';
import { sample, sampleNumbers, tensorOf, unitRoundoff } from '../support/samples.ts';
import {
  type OpenDevice,
  type Reference,
  expectReference,
  floatingPointDTypes,
} from '../support/vector-jacobian.ts';

const running = (shape: Shape, dimension: number, values: readonly number[]): number[] => {
  const sums = [...values];
  for (const line of linesOf(shape, dimension)) {
    line.forEach((at, i) => (sums[at]! += i > 0 ? sums[line[i - 1]!]! : 0));
  }
  return sums;
};

const reference =
  (shape: Shape, dimension: number) =>
  (values: number[]): Reference => ({
    y: running(shape, dimension, values),
    gradients: (g) => [
      // The sums of the gradients from each element on.
      (() => {
        const dx = [...g];
        for (const line of linesOf(shape, dimension)) {
          for (let i = line.length - 2; i >= 0; i--) dx[line[i]!]! += dx[line[i + 1]!]!;
        }
        return dx;
      })(),
    ],
  });

/** cumsum on one device. */
export function describeCumsum(open: OpenDevice, dtypes = floatingPointDTypes): void {
  it.each(dtypes)('agrees with float64 along any dimension in %s, and so does its gradient', (dtype) => {
    for (const [shape, dimension] of [...lineShapes, [[3, 32], 1] as const]) {
      t.scope(() => {
        const x = sample(shape, { dtype, domain: [-1, 2], seed: 41 }, open());
        expectReference((values) => t.cumsum(values, dimension), [x], reference(shape, dimension), {
          forward: 1,
          backward: 1,
        });
      });
    }
  });

  it('rounds each sum once, however long it is', () => {
    t.scope(() => {
      const size = 9000;
      const x = sample([size], { domain: [99, 101], seed: 42 }, open());
      const exact = running([size], 0, x.toFlatArray());
      const wrong = t
        .cumsum(x, 0)
        .toFlatArray()
        .findIndex((sum, i) => Math.abs(sum - exact[i]!) > unitRoundoff.float32! * exact[i]!);
      expect(wrong).toBe(-1);
    });
  });

  it('passes infinities and NaN on', () => {
    t.scope(() => {
      const values = new Array<number>(1100).fill(1);
      values[40] = Infinity;
      values[1060] = -Infinity;
      const sums = t.cumsum(tensorOf(values, [1100], 'float32', open()), -1).toFlatArray();
      const expected = values.map((_, i) => (i < 40 ? i + 1 : i < 1060 ? Infinity : NaN));
      expect(sums).toEqual(expected);
      const columns = tensorOf([1, NaN, 2, 3], [2, 2], 'float32', open());
      expect(t.cumsum(columns, 0).toArray()).toEqual([
        [1, NaN],
        [3, NaN],
      ]);
    });
  });

  it('adds integers and bools as int64, and wraps', () => {
    t.scope(() => {
      const device = open();
      const wide = BigInt64Array.of(2n ** 62n, 2n ** 62n, 1n);
      expect(t.cumsum(t.fromTypedArray(wide, [3], { device }), 0).toTypedArray()).toEqual(
        BigInt64Array.of(2n ** 62n, -(2n ** 63n), -(2n ** 63n) + 1n),
      );
      const values = sampleNumbers(100, [-(2 ** 31), 2 ** 31 - 1], 43).map(Math.floor);
      const narrow = t.cumsum(tensorOf(values, [2, 50], 'int32', device), 1);
      expect(narrow.dtype).toBe('int64');
      expect(narrow.toFlatArray()).toEqual(running([2, 50], 1, values));
      const bools = t.cumsum(tensorOf([1, 0, 1, 1], [4], 'bool', device), 0);
      expect([bools.dtype, bools.toArray()]).toEqual(['int64', [1, 1, 2, 3]]);
    });
  });

  it('takes views, scalars and empty tensors', () => {
    t.scope(() => {
      const x = sample([5, 8], { seed: 44 }, open());
      const part = t.slice(t.transpose(x), 0, 1, 8, 2);
      expect(t.cumsum(part, 0).toFlatArray()).toEqual(t.cumsum(t.contiguous(part), 0).toFlatArray());
      expect(t.cumsum(t.expand(t.ones([1], { device: open() }), [4]), 0).toArray()).toEqual([1, 2, 3, 4]);
      expect(t.cumsum(t.tensor(3, { device: open() }), 0).toArray()).toBe(3);
      expect(t.cumsum(t.zeros([0, 2], { device: open() }), 0).shape).toEqual([0, 2]);
      expect(t.cumsum(t.zeros([2, 0], { device: open() }), 1).shape).toEqual([2, 0]);
      expect(() => t.cumsum(x, 2)).toThrow('cumsum: dimension 2');
    });
  });

  it('is calculated in float32 under autocast', () => {
    t.scope(() => {
      const x = t.cast(sample([4], { seed: 45 }, open()), 'bfloat16');
      expect(t.autocast('bfloat16', () => t.cumsum(x, 0)).dtype).toBe('float32');
    });
  });
}
