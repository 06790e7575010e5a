import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { DType } from '../../../src/index.ts';
import { lineShapes, linesOf, without } from '../support/lines.ts';
import { sampleNumbers, tensorOf } from '../support/samples.ts';
import type { OpenDevice } from '../support/vector-jacobian.ts';

const everyDType: readonly DType[] = ['float64', 'float32', 'float16', 'bfloat16', 'int32', 'int64', 'bool'];

/** any and all on one device. */
export function describeAnyAll(open: OpenDevice, dtypes = everyDType): void {
  describe.each(['any', 'all'] as const)('%s', (name) => {
    const fn = t[name];
    const truth = (values: readonly number[]) =>
      Number(name === 'any' ? values.some((x) => x !== 0) : values.every((x) => x !== 0));
    // Nearly all zeros, or nearly none.
    const values = (size: number, length: number) =>
      sampleNumbers(size, [0, 1], 61).map((x) => Number(x < 0.7 / length === (name === 'any')));

    it.each(dtypes)('folds any dimension of %s', (dtype) => {
      for (const [shape, dimension] of lineShapes) {
        t.scope(() => {
          const flat = values(t.sizeOf(shape), shape[dimension]!);
          const y = fn(tensorOf(flat, shape, dtype, open()), { dims: dimension });
          expect(y.dtype).toBe('bool');
          expect(y.shape).toEqual(without(shape, dimension));
          expect(y.toFlatArray()).toEqual(
            linesOf(shape, dimension).map((line) => truth(line.map((at) => flat[at]!))),
          );
        });
      }
    });

    it('takes NaN, small and negative numbers for true, and -0 for false', () => {
      t.scope(() => {
        for (const value of [NaN, -1, 1e-40, 0.25, Infinity, -0, 0]) {
          const x = tensorOf([value], [1], 'float32', open());
          expect(fn(x).toArray()).toBe(Number(value !== 0));
          expect(fn(t.expand(x, [2, 2]), { dims: 0 }).toArray()).toEqual(
            [value, value].map((v) => Number(v !== 0)),
          );
        }
      });
    });

    it('is that of no elements, too', () => {
      t.scope(() => {
        const none = t.zeros([2, 0], { device: open() });
        const neutral = name === 'any' ? 0 : 1;
        expect(fn(none).toArray()).toBe(neutral);
        expect(fn(none, { dims: 1 }).toArray()).toEqual([neutral, neutral]);
        expect(fn(none, { dims: 1, keepDims: true }).shape).toEqual([2, 1]);
        expect(fn(none, { dims: 0 }).shape).toEqual([0]);
        expect(fn(none).dtype).toBe('bool');
        expect(fn(none).device).toBe(open());
      });
    });

    it('folds several dimensions or all, and keeps them', () => {
      t.scope(() => {
        const flat = [1, 0, 0, 0, 1, 1, 1, 1];
        const x = tensorOf(flat, [2, 2, 2], 'int32', open());
        expect(fn(x).toArray()).toBe(truth(flat));
        expect(fn(x, { dims: [0, 2], keepDims: true }).toArray()).toEqual(
          name === 'any' ? [[[1], [1]]] : [[[0], [0]]],
        );
        expect(fn(x, { dims: [1, 2] }).toArray()).toEqual(name === 'any' ? [1, 1] : [0, 1]);
        expect(() => fn(x, { keepdim: true } as never)).toThrow(`${name}: there is no option "keepdim"`);
      });
    });
  });
}
