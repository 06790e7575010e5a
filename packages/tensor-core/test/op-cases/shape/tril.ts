import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { Shape, Tensor } from '../../../src/index.ts';
import { causalMask, tril } from '../../../src/ops/shape/tril.ts';
import { sample, tensorOf } from '../support/samples.ts';
import {
  type OpenDevice,
  type Reference,
  expectFiniteDifferences,
  expectReference,
  floatingPointDTypes,
} from '../support/vector-jacobian.ts';

const triangleReference =
  (shape: Shape, diagonal: number, fill: number) =>
  (x: number[]): Reference => {
    const [rows, columns] = shape.slice(-2) as [number, number];
    const kept = (at: number) => at % columns <= (Math.floor(at / columns) % rows) + diagonal;
    return {
      y: x.map((value, at) => (kept(at) ? value : fill)),
      gradients: (g) => [g.map((value, at) => (kept(at) ? value : 0))],
    };
  };

const shapes: readonly Shape[] = [
  [1, 1],
  [3, 5],
  [5, 3],
  [2, 3, 64, 64],
  [2, 130, 257],
  [1, 150, 1024],
];

/** tril and causalMask on one device. */
export function describeTriangles(open: OpenDevice, dtypes = floatingPointDTypes): void {
  it.each(['int32', 'int64', 'bool'] as const)('takes matrices of %s', (dtype) => {
    t.scope(() => {
      const y = tril(t.ones([2, 3], { dtype, device: open() }));
      expect([y.dtype, y.toFlatArray()]).toEqual([dtype, [1, 0, 0, 1, 1, 0]]);
    });
  });

  it('keeps -0 and NaN where it masks nothing', () => {
    t.scope(() => {
      const x = t.tensor([[-0, 5], [NaN, -0]], { device: open() }); // prettier-ignore
      expect(causalMask(x).toFlatArray()).toEqual([-0, -Infinity, NaN, -0]);
      expect(tril(x).toFlatArray()).toEqual([-0, 0, NaN, -0]);
    });
  });

  const expectTriangle = (
    fn: (x: Tensor) => Tensor,
    shape: Shape,
    diagonal: number,
    fill: number,
    x: Tensor,
  ) =>
    expectReference((y) => fn(y!), [x], triangleReference(shape, diagonal, fill), {
      forward: 0,
      backward: 0,
    });

  describe('tril', () => {
    it.each(dtypes)('keeps the lower triangle in %s, and so does its gradient', (dtype) => {
      for (const shape of shapes) {
        for (const diagonal of [-150, -2, 0, 1030]) {
          t.scope(() => {
            const x = sample(shape, { dtype, seed: 24 }, open());
            expectTriangle((y) => tril(y, diagonal), shape, diagonal, 0, x);
          });
        }
      }
    });
  });

  describe('causalMask', () => {
    it.each(dtypes)('puts -Infinity above the diagonal of the last query in %s', (dtype) => {
      for (const shape of shapes) {
        t.scope(() => {
          const diagonal = shape.at(-1)! - shape.at(-2)!;
          expectTriangle(causalMask, shape, diagonal, -Infinity, sample(shape, { dtype, seed: 25 }, open()));
        });
      }
    });

    it('has the gradient that finite differences show, through a softmax', () => {
      t.scope(() => {
        const x = sample([2, 3, 4], { dtype: 'float64' }, open());
        expectFiniteDifferences((scores) => t.exp(causalMask(scores)), [x]);
      });
    });
  });

  it('hides what it masks, NaN too, and keeps the rest', () => {
    t.scope(() => {
      const x = tensorOf([1, NaN, Infinity, NaN, 2, -Infinity], [2, 3], 'float32', open());
      expect(causalMask(x).toFlatArray()).toEqual([1, NaN, -Infinity, NaN, 2, -Infinity]);
      expect(tril(x).toFlatArray()).toEqual([1, 0, 0, NaN, 2, 0]);
      const y = tensorOf([NaN, NaN, NaN, NaN], [2, 2], 'float32', open());
      expect(causalMask(y).toFlatArray()).toEqual([NaN, -Infinity, NaN, NaN]);
    });
  });

  it('reads more matrices than a grid has rows, and diagonals far outside', () => {
    t.scope(() => {
      const shape = [65_540, 2, 2];
      const x = sample(shape, { seed: 26 }, open());
      expectTriangle(tril, shape, 0, 0, x);
      const y = sample([2, 3], {}, open());
      expect(tril(y, 2 ** 33).toFlatArray()).toEqual(y.toFlatArray());
      expect(tril(y, -(2 ** 33)).toFlatArray()).toEqual([0, 0, 0, 0, 0, 0]);
      expect(() => tril(y, 0.5)).toThrow('tril: the diagonal must be a whole number, not 0.5');
    });
  });

  it('gives nothing of nothing', () => {
    t.scope(() => {
      for (const shape of [
        [0, 3],
        [2, 0],
        [0, 2, 2],
      ]) {
        expect(tril(t.zeros(shape, { device: open() })).shape).toEqual(shape);
        expect(causalMask(t.zeros(shape, { device: open() })).toFlatArray()).toEqual([]);
      }
    });
  });

  it('names shapes and dtypes that do not fit', () => {
    t.scope(() => {
      expect(() => tril(sample([3], {}, open()))).toThrow('tril: takes matrices [..., T, S], not [3]');
      expect(() => causalMask(sample([3], {}, open()))).toThrow('causalMask: takes matrices');
      expect(() => causalMask(t.cast(sample([2, 2], {}, open()), 'int32'))).toThrow(
        'causalMask: x must be floating-point',
      );
    });
  });
}
