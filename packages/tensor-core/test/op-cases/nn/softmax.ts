import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { Shape } from '../../../src/index.ts';
import { logSoftmax } from '../../../src/ops/nn/log-softmax.ts';
import { softmax } from '../../../src/ops/nn/softmax.ts';
import { relativeError, sample, sampleNumbers, tensorOf } from '../support/samples.ts';
import {
  type OpenDevice,
  type Reference,
  dot,
  expectFiniteDifferences,
  expectReference,
  floatingPointDTypes,
  rowsOf,
} from '../support/vector-jacobian.ts';

function softmaxRow(x: readonly number[]): number[] {
  const largest = x.reduce((a, b) => Math.max(a, b), -Infinity);
  const powers = x.map((value) => Math.exp(value - largest));
  const total = powers.reduce((a, b) => a + b, 0);
  return powers.map((value) => value / total);
}

const softmaxReference =
  (columns: number) =>
  (x: number[]): Reference => {
    const rows = rowsOf(x, columns).map(softmaxRow);
    return {
      y: rows.flat(),
      gradients: (g) => [
        rowsOf(g, columns).flatMap((row, i) => {
          const inner = dot(row, rows[i]!);
          return row.map((value, j) => rows[i]![j]! * (value - inner));
        }),
      ],
    };
  };

const logSoftmaxReference =
  (columns: number) =>
  (x: number[]): Reference => {
    const rows = rowsOf(x, columns).map(softmaxRow);
    return {
      y: rows.flatMap((row) => row.map(Math.log)),
      gradients: (g) => [
        rowsOf(g, columns).flatMap((row, i) => {
          const total = row.reduce((a, b) => a + b, 0);
          return row.map((value, j) => value - rows[i]![j]! * total);
        }),
      ],
    };
  };

// One element; short rows that share a warp; a warp each; odd ones; a block each; too long for registers.
const shapes: readonly Shape[] = [
  [1],
  [6, 8],
  [3, 2, 33],
  [5, 256],
  [3, 257],
  [4, 2560],
  [2, 5003],
  [1, 70001],
];

const ops = [
  { name: 'softmax', fn: softmax, reference: softmaxReference },
  { name: 'logSoftmax', fn: logSoftmax, reference: logSoftmaxReference },
];

/** softmax and logSoftmax on one device. */
export function describeSoftmax(open: OpenDevice, dtypes = floatingPointDTypes): void {
  describe.each(ops)('$name', ({ name, fn, reference }) => {
    it.each(dtypes)('agrees with float64 in %s, and so does its gradient', (dtype) => {
      for (const shape of shapes) {
        t.scope(() => {
          const x = sample(shape, { dtype, domain: [-4, 4], seed: 3 }, open());
          expectReference((rows) => fn(rows), [x], reference(shape.at(-1)!));
        });
      }
    });

    it('works along any dimension', () => {
      t.scope(() => {
        const x = sample([3, 5, 4], { seed: 4 }, open());
        const along = t.transpose(fn(t.contiguous(t.transpose(x, 0, 2))), 0, 2).toFlatArray();
        const y = fn(x, 0);
        expect(y.shape).toEqual([3, 5, 4]);
        expect(y.toFlatArray()).toEqual(along);
        expect(fn(x, -3).toFlatArray()).toEqual(along);
      });
    });

    it('has the gradient that finite differences show, along any dimension', () => {
      for (const dimension of [0, 1, 2]) {
        t.scope(() => {
          expectFiniteDifferences(
            (x) => fn(x, dimension),
            [sample([2, 3, 4], { dtype: 'float64', seed: 5 }, open())],
          );
        });
      }
    });

    it('gives masked elements nothing, wherever they are', () => {
      t.scope(() => {
        const values = Array.from({ length: 600 }, (_, i) =>
          i % 7 === 0 || i < 300 ? -Infinity : Math.sin(i),
        );
        const y = fn(tensorOf(values, [600], 'float32', open()));
        const probabilities = name === 'softmax' ? y : t.exp(y);
        expect(relativeError(probabilities.toFlatArray(), softmaxRow(values))).toBeLessThan(2 ** -20);
      });
    });

    it('survives large elements, and gives NaN for a row of -Infinity or with a NaN', () => {
      t.scope(() => {
        const big = fn(tensorOf([1e4, 1e4 - 1, -1e30], [3], 'float32', open())).toFlatArray();
        expect(big[0]).toBeCloseTo(name === 'softmax' ? 0.7310586 : Math.log(0.7310586), 5);
        for (const row of [
          [-Infinity, -Infinity],
          [1, NaN],
        ]) {
          expect(fn(tensorOf(row, [2], 'float32', open())).toFlatArray()).toEqual([NaN, NaN]);
        }
      });
    });

    it.each(['float32', 'float64'] as const)('shows NaN and Infinity anywhere in a row of %s', (dtype) => {
      for (const length of [2, 33]) {
        for (const value of [NaN, Infinity]) {
          for (let at = 0; at < length; at += Math.ceil(length / 7)) {
            t.scope(() => {
              const row = Array.from({ length }, (_, i) => (i === at ? value : Math.sin(i)));
              expect(fn(tensorOf(row, [length], dtype, open())).toFlatArray()).toEqual(row.map(() => NaN));
            });
          }
        }
      }
      t.scope(() => {
        const rows = tensorOf([1, -Infinity, -Infinity, -Infinity], [2, 2], dtype, open());
        const [one, none] = name === 'softmax' ? [1, 0] : [0, -Infinity];
        expect(fn(rows).toFlatArray()).toEqual([one, none, NaN, NaN]);
      });
    });

    it('takes a scalar as a row of one', () => {
      t.scope(() => {
        const x = tensorOf([3], [], 'float32', open()).requiresGrad_();
        const y = fn(x);
        expect([y.shape, y.item()]).toEqual([[], name === 'softmax' ? 1 : 0]);
        expect(fn(x, 0).item()).toBe(y.item());
        y.backward();
        expect([x.grad!.shape, Math.abs(x.grad!.item())]).toEqual([[], 0]);
        expect(() => fn(x, 1)).toThrow(`${name}: dimension 1`);
      });
    });

    it('names the remedy for a wrong dimension or dtype', () => {
      t.scope(() => {
        const x = sample([2, 3], {}, open());
        expect(() => fn(x, 2)).toThrow(`${name}: dimension 2`);
        expect(() => fn(t.cast(x, 'int32'))).toThrow(`${name}: x must be floating-point, not int32`);
      });
    });
  });

  describe('causal softmax', () => {
    const causal = (x: t.Tensor) => softmax(x, -1, { causal: true });
    // Few rows share a warp, some a block each, and rows too long for registers; as many queries as keys, fewer, and more.
    const matrices: readonly Shape[] = [
      [2, 5, 5],
      [3, 8],
      [2, 2, 7, 4],
      [40, 256],
      [130, 136],
      [3, 2560],
      [2, 9001],
      [2, 40000],
    ];

    it.each(dtypes)('is softmax of masked scores in %s, and so is its gradient', (dtype) => {
      for (const shape of matrices) {
        const [rows, columns] = shape.slice(-2) as [number, number];
        t.scope(() => {
          const [x, g] = [1, 2].map((seed) => sample(shape, { dtype, domain: [-4, 4], seed }, open()));
          const of = (fn: (scores: t.Tensor) => t.Tensor) => {
            const leaf = x!.detach().requiresGrad_();
            const y = fn(leaf);
            y.backward(g!);
            return [y.toFlatArray(), leaf.grad!.toFlatArray()];
          };
          const [y, dx] = of(causal);
          const [expected, gradient] = of((scores) => softmax(t.causalMask(scores)));
          // Of rows that see nothing all is NaN, as of those of -Infinity; their gradients differ where nothing is seen.
          const isSeen = (_: number, i: number) => (Math.floor(i / columns) % rows) + columns >= rows;
          expect(relativeError(y!, expected!)).toBe(0);
          expect(relativeError(dx!.filter(isSeen), gradient!.filter(isSeen))).toBeLessThan(
            dtype === 'float64' ? 2 ** -50 : 2 ** -7,
          );
        });
      }
    });

    it('spreads rows over what they see', () => {
      t.scope(() => {
        const x = tensorOf([1, NaN, Infinity, 3, 1, NaN, 1, 1, 1], [3, 3], 'float32', open());
        const y = causal(x).toFlatArray();
        expect(y.slice(0, 3)).toEqual([1, 0, 0]);
        expect(y[5]).toBe(0);
        expect(y[3]! + y[4]!).toBeCloseTo(1, 6);
        for (const value of y.slice(6)) expect(value).toBeCloseTo(1 / 3, 6);
      });
    });

    // Vectors of one element; of several, some of which are masked; and of rows too long for registers.
    it.each([
      [3, 3],
      [5, 8],
      [3, 40000],
    ])('reads nothing of what is masked in %i rows of %i, which has no gradient', (rows, columns) => {
      const isMasked = (_: number, i: number) => (i % columns) - Math.floor(i / columns) > columns - rows;
      const given = [1, 2].map((seed) => sampleNumbers(rows * columns, [-3, 3], seed));
      // Where a row sees NaN, its gradient is that, but for what is masked.
      given[1]![columns] = NaN;
      const of = (values: readonly number[][]) =>
        t.scope(() => {
          const [x, dy] = values.map((each) => tensorOf(each, [rows, columns], 'float32', open()));
          const y = causal(x!.requiresGrad_());
          y.backward(dy!);
          return [y.toFlatArray(), x!.grad!.toFlatArray()];
        });
      const spoiled = given.map((values) =>
        values.map((value, i) => (isMasked(value, i) ? [NaN, Infinity][i % 2]! : value)),
      );
      const [made, expected] = [of(spoiled), of(given)];
      for (const [i, values] of made.entries()) {
        expect(relativeError(values, expected[i]!)).toBe(0);
        expect(new Set(values.filter(isMasked))).toEqual(new Set([0]));
      }
      expect(made[1]!.slice(columns).filter(Number.isNaN)).toHaveLength(columns + 2 - rows);
    });

    it('has the gradient that finite differences show', () => {
      t.scope(() => {
        expectFiniteDifferences(causal, [sample([2, 3, 4], { dtype: 'float64', seed: 5 }, open())]);
      });
    });

    it('takes matrices, and the last dimension', () => {
      t.scope(() => {
        const x = sample([2, 3], {}, open());
        expect(() => softmax(x, 0, { causal: true })).toThrow(
          'softmax: causal rows lie along the last dimension',
        );
        expect(() => causal(t.reshape(x, [6]))).toThrow('causalSoftmax: takes matrices [..., T, S], not [6]');
        expect(() => softmax(x, -1, { causal: 1 as never })).toThrow('softmax');
      });
    });
  });
}
