import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import type { Shape, Tensor } from '../../src/index.ts';
import { causalMask, tril } from '../../src/ops/shape/tril.ts';
import { sample } from './samples.ts';
import {
  type OpenDevice,
  type Reference,
  expectFiniteDifferences,
  expectReference,
  floatingPointDTypes,
} from './vector-jacobian.ts';

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

  it('names shapes and dtypes that do not fit', () => {
    t.scope(() => {
      expect(() => tril(sample([3], {}, open()))).toThrow('tril: takes matrices [..., T, S], not [3]');
      expect(() => causalMask(sample([3], {}, open()))).toThrow('causalMask: takes matrices');
      expect(() => tril(t.cast(sample([2, 2], {}, open()), 'int32'))).toThrow(
        'tril: x must be floating-point',
      );
    });
  });
}
