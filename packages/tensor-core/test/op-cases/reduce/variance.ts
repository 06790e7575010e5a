import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { Shape, VarianceOptions } from '../../../src/index.ts';
import { linesOf } from '../support/lines.ts';
import { sample, tensorOf } from '../support/samples.ts';
import {
  type OpenDevice,
  type Reference,
  expectReference,
  floatingPointDTypes,
} from '../support/vector-jacobian.ts';

const meanOf = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / values.length;

function varianceOf(values: readonly number[], correction: number): number {
  const mean = meanOf(values);
  return values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - correction);
}

const reference =
  (name: 'var' | 'std', shape: Shape, dimension: number, correction: number) =>
  (values: number[]): Reference => {
    const lines = linesOf(shape, dimension);
    const of = lines.map((line) => line.map((at) => values[at]!));
    const y = of.map((line) => varianceOf(line, correction)).map(name === 'std' ? Math.sqrt : Number);
    return {
      y,
      gradients: (g) => {
        const dx = values.map(() => 0);
        lines.forEach((line, i) => {
          const outer = name === 'std' ? g[i]! / (2 * y[i]!) : g[i]!;
          const scale = (2 * outer) / (line.length - correction);
          for (const at of line) dx[at] = scale * (values[at]! - meanOf(of[i]!));
        });
        return [dx];
      },
    };
  };

/** var and std on one device. */
export function describeVariance(open: OpenDevice, dtypes = floatingPointDTypes): void {
  describe.each(['var', 'std'] as const)('%s', (name) => {
    const fn = t[name];

    it.each(dtypes)('agrees with float64 in %s, and so does its gradient', (dtype) => {
      for (const [shape, dimension, correction] of [
        [[2, 7, 3], 1, 1],
        [[5, 40], -1, 0],
        [[5, 4], 0, 2.5],
      ] as const) {
        t.scope(() => {
          const x = sample(shape, { dtype, seed: 51 }, open());
          const options = correction === 1 ? { dims: dimension } : { dims: dimension, correction };
          const dim = dimension < 0 ? shape.length - 1 : dimension;
          const expected = reference(name, shape, dim, correction);
          expectReference((values) => fn(values, options), [x], expected, { backward: 8 });
        });
      }
    });

    it('folds several dimensions or all, and keeps them', () => {
      t.scope(() => {
        const x = sample([3, 4, 5], { seed: 52 }, open());
        const values = x.toFlatArray();
        const root = name === 'std' ? Math.sqrt : Number;
        expect(fn(x).shape).toEqual([]);
        expect(fn(x).item()).toBeCloseTo(root(varianceOf(values, 1)), 5);
        const y = fn(x, { dims: [0, 2], keepDims: true });
        expect(y.shape).toEqual([1, 4, 1]);
        const second = values.filter((_, at) => Math.floor(at / 5) % 4 === 1);
        expect(y.toFlatArray()[1]).toBeCloseTo(root(varianceOf(second, 1)), 5);
      });
    });

    it.each<[Shape, number[]]>([
      [
        [3, 1, 4, 5],
        [1, 2],
      ],
      [
        [2, 3, 4, 5],
        [0, 2],
      ],
      [
        [2, 3, 4, 5],
        [1, 3],
      ],
      [[9, 5], [0]],
      [[4, 2050], [1]],
      [[4, 1], [1]],
      [[2, 3], []],
    ])('of %j over %j is that of each line, and so is its gradient', (shape, dims) => {
      t.scope(() => {
        const x = t.cast(sample(shape, { seed: 54 }, open()), 'float64').requiresGrad_();
        const y = fn(x, { dims, correction: 0 });
        t.sum(t.mul(y, y)).backward();
        const centered = t.sub(x.detach(), t.mean(x.detach(), { dims, keepDims: true }));
        const count = t.sizeOf(dims.map((dim) => shape[dim]!));
        const squares = t.div(t.sum(t.mul(centered, centered), { dims, keepDims: true }), count);
        const expected = name === 'std' ? t.sqrt(squares) : squares;
        const slope = name === 'std' ? 2 / count : t.mul(squares, 4 / count);
        const gradient = t.mul(centered, slope);
        const close = (a: readonly number[], b: readonly number[]) =>
          a.forEach((value, i) =>
            expect(Math.abs(value - b[i]!)).toBeLessThanOrEqual(2 ** -44 * Math.abs(b[i]!) + 2 ** -50),
          );
        close(y.toFlatArray(), expected.toFlatArray());
        close(x.grad!.toFlatArray(), gradient.toFlatArray());
      });
    });

    it('loses no digits to a mean far from zero', () => {
      t.scope(() => {
        // Exact in float32: 4096 numbers around 8192, a quarter apart.
        const values = Array.from({ length: 4096 }, (_, i) => 8192 + ((i * 769) % 4096) / 4);
        const exact = varianceOf(values, 1);
        const y = fn(tensorOf(values, [4096], 'float32', open())).item();
        const expected = name === 'std' ? Math.sqrt(exact) : exact;
        expect(Math.abs(y / expected - 1)).toBeLessThan(2 ** -20);
      });
    });

    it('of equal elements is 0, next to lines of other elements', () => {
      t.scope(() => {
        const values = [-0.94865926154306, 333.70124387];
        for (const [shape, dims] of [
          [[2, 2904], -1],
          [[2904, 2], 0],
        ] as const) {
          const line = tensorOf(values, dims === 0 ? [1, 2] : [2, 1], 'float64', open());
          const y = fn(t.contiguous(t.expand(line, shape)), { dims }).toFlatArray();
          values.forEach((value, i) => expect(y[i]).toBeLessThan(2 ** -49 * Math.abs(value)));
        }
      });
    });

    it('is exact where squares leave the dtype, or the mean hides the spread', () => {
      t.scope(() => {
        const of = (values: number[]) => {
          const x = tensorOf(values, [values.length], 'float32', open()).requiresGrad_();
          const y = fn(x);
          y.backward();
          const exact = varianceOf(x.toFlatArray(), 1);
          const expected = Math.fround(name === 'std' ? Math.sqrt(exact) : exact);
          return { values: [y.item(), expected], gradient: x.grad!.toFlatArray() };
        };
        for (const scale of [2 ** -126, 2 ** -70, 2 ** 63, name === 'std' ? 2 ** 126 : 2 ** 62]) {
          const { values, gradient } = of([0.5, -1, 0.25, 0].map((x) => x * scale));
          expect(values[0]).toBe(values[1]);
          // The slope of std does not depend on the scale.
          if (name === 'std') expect(gradient[1]).toBeCloseTo(-0.4753, 4);
        }
        // A mean in float32 would be off by more than the spread.
        const far = of([2 ** 24, 2 ** 24 + 2, 2 ** 24 + 4, 2 ** 24 + 4]);
        expect(far.values[0]).toBe(far.values[1]);
      });
    });

    it('is NaN of too few elements, and Infinity where the divisor alone is zero', () => {
      t.scope(() => {
        const of = (values: number[], options?: VarianceOptions) =>
          fn(tensorOf(values, [values.length], 'float32', open()), options).item();
        expect(of([1])).toBeNaN();
        expect(of([1], { correction: 0 })).toBe(0);
        expect(of([1], { correction: 3 })).toBeNaN();
        expect(of([1, 2], { correction: 2 })).toBe(Infinity);
        expect(of([1, 2], { dims: 0, correction: 3 })).toBe(Infinity);
        expect(of([])).toBeNaN();
        expect(of([1, NaN, 2])).toBeNaN();
        expect(of([1, Infinity])).toBeNaN();
        expect(fn(t.tensor(3, { device: open() })).item()).toBeNaN();
      });
    });

    it('is of the dtype of x', () => {
      t.scope(() => {
        const x = t.cast(sample([4, 3], { seed: 53 }, open()), 'bfloat16');
        expect(fn(x, { dims: 0 }).dtype).toBe('bfloat16');
        expect(t.autocast('bfloat16', () => fn(x, { dims: 0 })).dtype).toBe('bfloat16');
      });
    });

    it('names what it does not take', () => {
      t.scope(() => {
        const x = t.zeros([2, 3], { device: open() });
        expect(() => fn(t.cast(x, 'int64'))).toThrow(`${name}: x must be floating-point, not int64`);
        expect(() => fn(x, { unbiased: false } as never)).toThrow(`${name}: there is no option "unbiased"`);
        expect(() => fn(x, { correction: NaN })).toThrow(`${name}: the correction must be a finite number`);
        expect(() => fn(x, { dims: 2 })).toThrow(`${name}: dimension 2`);
      });
    });
  });

  it('std of equal elements has the gradient 0', () => {
    t.scope(() => {
      const x = t.full([3], 2, { device: open() }).requiresGrad_();
      t.std(x).backward();
      expect(x.grad!.toArray()).toEqual([0, 0, 0]);
    });
  });
}
