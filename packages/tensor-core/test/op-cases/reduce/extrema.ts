import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { DType, Shape, Tensor } from '../../../src/index.ts';
import { lineShapes, linesOf, without } from '../support/lines.ts';
import { sample, sampleNumbers, tensorOf } from '../support/samples.ts';
import {
  type OpenDevice,
  type Reference,
  expectFiniteDifferences,
  expectReference,
  floatingPointDTypes,
} from '../support/vector-jacobian.ts';

/** Integers, many of them equal, and some NaN. */
function withTies(shape: Shape, seed: number, nans = true): number[] {
  const size = t.sizeOf(shape);
  const dice = sampleNumbers(size, [0, 1], seed + 1);
  return sampleNumbers(size, [-9, 9], seed).map((value, i) =>
    nans && dice[i]! < 0.5 / size ** 0.75 ? NaN : Math.floor(value),
  );
}

/** Whether `a` is chosen before `b`, which comes after it. */
const isBetter = {
  argmax: (a: number, b: number) => a > b || (Number.isNaN(a) && !Number.isNaN(b)),
  argmin: (a: number, b: number) => a < b || (Number.isNaN(a) && !Number.isNaN(b)),
};

function referenceArg(name: 'argmax' | 'argmin', values: readonly number[], line: readonly number[]): number {
  return line.reduce((best, at, i) => (isBetter[name](values[at]!, values[line[best]!]!) ? i : best), 0);
}

function describeArg(name: 'argmax' | 'argmin', open: OpenDevice, dtypes: readonly DType[]): void {
  const find = t[name];

  it.each(dtypes)('finds the first along any dimension in %s', (dtype) => {
    for (const [shape, dimension] of lineShapes) {
      t.scope(() => {
        const values = withTies(shape, 7);
        const index = find(tensorOf(values, shape, dtype, open()), { dims: dimension });
        expect(index.dtype).toBe('int64');
        expect(index.shape).toEqual(without(shape, dimension));
        expect(index.toFlatArray()).toEqual(
          linesOf(shape, dimension).map((line) => referenceArg(name, values, line)),
        );
      });
    }
  });

  it('finds it in whole tensors, in row-major order', () => {
    t.scope(() => {
      const values = withTies([4, 6], 8, false);
      const x = tensorOf(values, [4, 6], 'float32', open());
      const expected = (order: readonly number[]) => referenceArg(name, values, order);
      expect(find(x).shape).toEqual([]);
      expect(find(x).item()).toBe(expected([...values.keys()]));
      expect(find(x, { keepDims: true }).shape).toEqual([1, 1]);
      const columnMajor = linesOf([4, 6], 0).flat();
      expect(find(t.transpose(x)).item()).toBe(expected(columnMajor));
      expect(find(t.tensor(3, { device: open() }), { dims: -1 }).toArray()).toBe(0);
    });
  });

  it('counts dimensions from the back, and keeps them', () => {
    t.scope(() => {
      const x = tensorOf(withTies([2, 3, 4], 9), [2, 3, 4], 'float32', open());
      const kept = find(x, { dims: -2, keepDims: true });
      expect(kept.shape).toEqual([2, 1, 4]);
      expect(kept.toFlatArray()).toEqual(find(x, { dims: 1 }).toFlatArray());
    });
  });

  it('takes views in place', () => {
    t.scope(() => {
      const x = sample([6, 9], { seed: 3 }, open());
      const part = t.slice(t.transpose(x), 0, 1, 8, 3);
      expect(find(part, { dims: 0 }).toFlatArray()).toEqual(
        find(t.contiguous(part), { dims: 0 }).toFlatArray(),
      );
      expect(find(t.expand(t.tensor([[1], [2]], { device: open() }), [2, 3]), { dims: 1 }).toArray()).toEqual(
        [0, 0],
      );
    });
  });

  it('lets NaN win, and compares infinities and zeros as numbers', () => {
    t.scope(() => {
      const at = (values: number[]) => find(tensorOf(values, [values.length], 'float32', open())).item();
      expect(at([1, NaN, Infinity, NaN, -Infinity])).toBe(1);
      expect(at([1, -Infinity, Infinity])).toBe(name === 'argmax' ? 2 : 1);
      expect(at([-0, 0])).toBe(0);
      expect(at([0, -0])).toBe(0);
      expect(at([-Infinity, -Infinity])).toBe(0);
      expect(at([Infinity, Infinity])).toBe(0);
    });
  });

  it('distinguishes large integers', () => {
    t.scope(() => {
      const [device, shape] = [open(), [3]];
      const wide = BigInt64Array.of(2n ** 60n, 2n ** 60n + 1n, 2n ** 60n - 1n);
      const x = t.fromTypedArray(wide, shape, { device });
      expect(find(x).item()).toBe(name === 'argmax' ? 1 : 2);
      const narrow = Int32Array.of(0, 2 ** 31 - 1, -(2 ** 31));
      expect(find(t.fromTypedArray(narrow, shape, { device })).item()).toBe(name === 'argmax' ? 1 : 2);
    });
  });

  it('gives nothing for no lines, and refuses lines of nothing', () => {
    t.scope(() => {
      const options = { device: open() };
      expect(find(t.zeros([0, 3], options), { dims: 1 }).shape).toEqual([0]);
      expect(() => find(t.zeros([3, 0], options), { dims: 1 })).toThrow(
        `${name}: [3, 0] has no elements to search`,
      );
      expect(() => find(t.zeros([0], options))).toThrow('has no elements to search');
      expect(() => find(t.zeros([2], { ...options, dtype: 'bool' }))).toThrow(`${name}: bools have no order`);
      expect(() => find(t.zeros([2], options), { dims: 1 })).toThrow(`${name}: dimension 1`);
      expect(() => find(t.zeros([2], options), { dim: 1 } as never)).toThrow(
        `${name}: there is no option "dim"; did you mean "dims"?`,
      );
    });
  });
}

function describeMin(open: OpenDevice, dtypes: readonly DType[]): void {
  const reference =
    (shape: Shape, dimension: number) =>
    (values: number[]): Reference => {
      const lines = linesOf(shape, dimension);
      const y = lines.map((line) => line.reduce((least, at) => Math.min(least, values[at]!), Infinity));
      return {
        y,
        gradients: (g) => {
          const dx = values.map(() => 0);
          lines.forEach((line, i) => {
            const chosen = line.filter((at) => values[at] === y[i]);
            for (const at of chosen) dx[at] = g[i]! / chosen.length;
          });
          return [dx];
        },
      };
    };

  it.each(dtypes)('is the smallest along any dimension in %s', (dtype) => {
    for (const [shape, dimension] of lineShapes) {
      t.scope(() => {
        const values = withTies(shape, 11, false);
        const y = t.min(tensorOf(values, shape, dtype, open()), { dims: dimension });
        expect(y.dtype).toBe(dtype);
        expect(y.toFlatArray()).toEqual(reference(shape, dimension)(values).y);
      });
    }
  });

  it.each(dtypes)('shares the gradient among equal ones in %s', (dtype) => {
    const shape = [2, 9, 4];
    t.scope(() => {
      const x = tensorOf(withTies(shape, 14, false), shape, dtype, open());
      expectReference((values) => t.min(values, { dims: 1 }), [x], reference(shape, 1));
    });
  });

  it('folds several dimensions or all, and keeps them', () => {
    t.scope(() => {
      const x = sample([3, 4, 5], { seed: 12 }, open());
      const values = x.toFlatArray();
      expect(t.min(x).item()).toBe(Math.min(...values));
      const y = t.min(x, { dims: [0, -1], keepDims: true });
      expect(y.shape).toEqual([1, 4, 1]);
      const of = (j: number) => values.filter((_, at) => Math.floor(at / 5) % 4 === j);
      expect(y.toFlatArray()).toEqual([0, 1, 2, 3].map((j) => Math.min(...of(j))));
      expect(t.min(t.transpose(x, 0, 2), { dims: 0 }).toArray()).toEqual(
        t.min(t.contiguous(t.transpose(x, 0, 2)), { dims: 0 }).toArray(),
      );
      expect(t.min(t.tensor(4, { device: open() })).toArray()).toBe(4);
    });
  });

  it('lets NaN win, and is Infinity of infinities', () => {
    t.scope(() => {
      const x = tensorOf(
        [1, NaN, 2, Infinity, Infinity, Infinity, 3, -Infinity, 4],
        [3, 3],
        'float32',
        open(),
      );
      expect(t.min(x, { dims: 1 }).toArray()).toEqual([NaN, Infinity, -Infinity]);
    });
  });

  it('keeps integers exact', () => {
    t.scope(() => {
      const device = open();
      const wide = BigInt64Array.of(2n ** 62n + 1n, 2n ** 62n, 2n ** 63n - 1n);
      expect(t.min(t.fromTypedArray(wide, [3], { device })).toTypedArray()).toEqual(
        BigInt64Array.of(2n ** 62n),
      );
      const narrow = Int32Array.of(2 ** 31 - 1, 2 ** 31 - 1);
      expect(t.min(t.fromTypedArray(narrow, [2], { device })).toTypedArray()).toEqual(
        Int32Array.of(2 ** 31 - 1),
      );
      const bools = t.tensor(
        [
          [1, 1],
          [1, 0],
        ],
        { dtype: 'bool', device },
      );
      const y = t.min(bools, { dims: 1 });
      expect([y.dtype, y.toArray()]).toEqual(['bool', [1, 0]]);
    });
  });

  it('is nothing of no lines, and refuses lines of nothing', () => {
    t.scope(() => {
      const options = { device: open() };
      expect(t.min(t.zeros([0, 3], options), { dims: 1 }).shape).toEqual([0]);
      expect(() => t.min(t.zeros([0, 3], options), { dims: 0 })).toThrow(
        'min: dimension 0 of [0, 3] has no elements',
      );
      expect(() => t.min(t.zeros([0], options))).toThrow('min: dimension 0 of [0] has no elements');
      expect(() => t.min(t.zeros([2], options), { keepdim: true } as never)).toThrow(
        'did you mean "keepDims"?',
      );
    });
  });
}

/** The positions of the k best of a line, best first. */
function referenceTopk(
  values: readonly number[],
  line: readonly number[],
  k: number,
  largest: boolean,
): number[] {
  const rank = (value: number) => (Number.isNaN(value) ? 1 : 0);
  const order = (a: number, b: number) => {
    const [x, y] = [values[line[a]!]!, values[line[b]!]!];
    const ascending = rank(x) - rank(y) || (rank(x) === 1 ? 0 : x < y ? -1 : x > y ? 1 : 0);
    return (largest ? -ascending : ascending) || a - b;
  };
  return [...line.keys()].sort(order).slice(0, k);
}

function describeTopk(open: OpenDevice, dtypes: readonly DType[]): void {
  const expectTopk = (
    x: Tensor,
    values: readonly number[],
    k: number,
    dimension: number,
    largest: boolean,
  ) => {
    const chosen = t.topk(x, k, { dimension, largest });
    const lines = linesOf(x.shape, dimension);
    const found = lines.map((line) => referenceTopk(values, line, k, largest));
    const inLines = (y: Tensor) => {
      const flat = y.toFlatArray();
      return linesOf(y.shape, dimension).map((line) => line.map((at) => flat[at]!));
    };
    expect(chosen.indices.dtype).toBe('int64');
    expect(chosen.values.dtype).toBe(x.dtype);
    expect(inLines(chosen.indices)).toEqual(found);
    expect(inLines(chosen.values)).toEqual(
      found.map((order, i) => order.map((at) => values[lines[i]![at]!]!)),
    );
  };

  it.each(dtypes)('gives the largest and the smallest along any dimension, in order, in %s', (dtype) => {
    for (const [shape, dimension] of lineShapes.filter(([lengths]) => t.sizeOf(lengths) < 10000)) {
      const length = shape[dimension]!;
      for (const largest of [true, false]) {
        for (const k of new Set([1, Math.min(3, length), Math.min(300, length)])) {
          t.scope(() => {
            const values = withTies(shape, 21);
            expectTopk(tensorOf(values, shape, dtype, open()), values, k, dimension, largest);
          });
        }
      }
    }
  });

  it.each(['float64', 'int32', 'int64'] as const)('orders %s', (dtype) => {
    for (const largest of [true, false]) {
      t.scope(() => {
        const values = withTies([2, 300], 22, dtype === 'float64');
        expectTopk(tensorOf(values, [2, 300], dtype, open()), values, 5, 1, largest);
      });
    }
  });

  it('distinguishes numbers by their last bits', () => {
    t.scope(() => {
      const device = open();
      const close = Float64Array.of(1 + 2 ** -52, 1, 1 + 2 ** -51, -1 - 2 ** -52, -1);
      const top = (x: Tensor, k: number) => t.topk(x, k).indices.toArray();
      expect(top(t.fromTypedArray(close, [5], { device }), 5)).toEqual([2, 0, 1, 4, 3]);
      const wide = BigInt64Array.of(2n ** 62n, 2n ** 62n + 1n, -(2n ** 62n), -(2n ** 62n) - 1n);
      expect(top(t.fromTypedArray(wide, [4], { device }), 4)).toEqual([1, 0, 2, 3]);
      expect(t.topk(t.fromTypedArray(wide, [4], { device }), 1).values.toTypedArray()).toEqual(
        BigInt64Array.of(2n ** 62n + 1n),
      );
    });
  });

  it('takes the first of equal ones, 0 and -0 alike', () => {
    t.scope(() => {
      const indices = (values: number[], k: number, largest: boolean) =>
        t.topk(tensorOf(values, [values.length], 'float32', open()), k, { largest }).indices.toArray();
      expect(indices(new Array<number>(1000).fill(2), 4, true)).toEqual([0, 1, 2, 3]);
      expect(indices(new Array<number>(1000).fill(2), 4, false)).toEqual([0, 1, 2, 3]);
      expect(indices([0, -0, 0, -1], 3, true)).toEqual([0, 1, 2]);
      expect(indices([-0, 0, 1], 2, false)).toEqual([0, 1]);
      expect(indices([NaN, 1, NaN, 2], 3, true)).toEqual([0, 2, 3]);
      expect(indices([NaN, 1, -Infinity, Infinity], 4, false)).toEqual([2, 1, 3, 0]);
    });
  });

  it('gives the chosen elements the gradient', () => {
    t.scope(() => {
      const x = tensorOf([1, 5, 3, 4, 2, 6], [2, 3], 'float32', open()).requiresGrad_();
      const { values, indices } = t.topk(x, 2);
      expect(indices.requiresGrad).toBe(false);
      values.backward(tensorOf([10, 20, 30, 40], [2, 2], 'float32', open()));
      expect(x.grad!.toArray()).toEqual([
        [0, 10, 20],
        [40, 0, 30],
      ]);
    });
  });

  it('takes scalars, empty tensors and k = 0', () => {
    t.scope(() => {
      const options = { device: open() };
      const scalar = t.topk(t.tensor(4, options), 1);
      expect([scalar.values.toArray(), scalar.indices.toArray()]).toEqual([4, 0]);
      expect(t.topk(t.zeros([2, 3], options), 0).values.shape).toEqual([2, 0]);
      expect(t.topk(t.zeros([0, 3], options), 2).indices.shape).toEqual([0, 2]);
      expect(t.topk(t.zeros([3, 0, 2], options), 0, { dimension: 0 }).values.shape).toEqual([0, 0, 2]);
    });
  });

  it('names what it does not take', () => {
    t.scope(() => {
      const x = t.zeros([2, 3], { device: open() });
      for (const k of [4, -1, 1.5]) {
        expect(() => t.topk(x, k)).toThrow('topk: k must be a whole number from 0 to 3');
      }
      expect(() => t.topk(x, 3, { dimension: 0 })).toThrow(
        'from 0 to 2, the length of dimension 0 of [2, 3]',
      );
      expect(() => t.topk(t.cast(x, 'bool'), 1)).toThrow('topk: bools have no order');
      expect(() => t.topk(x, 1, { sorted: false } as never)).toThrow('there is no option "sorted"');
    });
  });
}

/** Finite differences of min and topk, in float64. */
export function describeExtremaGradients(open: OpenDevice): void {
  it('min has the gradient that finite differences show', () => {
    t.scope(() => {
      const x = sample([3, 4, 2], { dtype: 'float64', seed: 13 }, open());
      expectFiniteDifferences((values) => t.min(values, { dims: 1 }), [x]);
      expectFiniteDifferences((values) => t.min(values, { dims: [0, 2], keepDims: true }), [x]);
    });
  });

  it.each([0, 1, 2])('topk has the gradient that finite differences show along dimension %i', (dimension) => {
    t.scope(() => {
      const x = sample([3, 4, 3], { dtype: 'float64', seed: 23 }, open());
      expectFiniteDifferences((values) => t.topk(values, 2, { dimension, largest: false }).values, [x]);
    });
  });
}

/** min, argmax, argmin and topk on one device. */
export function describeExtrema(open: OpenDevice, dtypes = floatingPointDTypes): void {
  describe('min', () => describeMin(open, dtypes));
  describe('argmax', () => describeArg('argmax', open, dtypes));
  describe('argmin', () => describeArg('argmin', open, dtypes));
  describe('topk', () => describeTopk(open, dtypes));
}
