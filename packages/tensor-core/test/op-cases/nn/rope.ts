import { expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { Shape, Tensor } from '../../../src/index.ts';
import { rope } from '../../../src/ops/nn/rope.ts';
import { relativeError, sample, tensorOf, unitRoundoff } from '../support/samples.ts';
import {
  type OpenDevice,
  type Reference,
  expectFiniteDifferences,
  expectReference,
  floatingPointDTypes,
} from '../support/vector-jacobian.ts';

/** Rotates pairs by the angles of the tables, or back. */
function turn(
  x: readonly number[],
  cosine: readonly number[],
  sine: readonly number[],
  sign: number,
): number[] {
  const y: number[] = [];
  for (let i = 0; i < x.length; i += 2) {
    const pair = (i / 2) % cosine.length;
    const [c, s] = [cosine[pair]!, sign * sine[pair]!];
    y[i] = x[i]! * c - x[i + 1]! * s;
    y[i + 1] = x[i]! * s + x[i + 1]! * c;
  }
  return y;
}

function ropeReference(x: number[], cosine: number[], sine: number[]): Reference {
  return { y: turn(x, cosine, sine, 1), gradients: (g) => [turn(g, cosine, sine, -1), null, null] };
}

/** rope on one device. */
export function describeRope(open: OpenDevice, dtypes = floatingPointDTypes): void {
  const tables = (length: number, columns: number): [Tensor, Tensor] => {
    const angles = Array.from(
      { length: (length * columns) / 2 },
      (_, i) => Math.floor(i / (columns / 2)) * 10 ** (-(i % (columns / 2)) / 8),
    );
    const shape = [length, columns / 2];
    return [
      tensorOf(angles.map(Math.cos), shape, 'float32', open()),
      tensorOf(angles.map(Math.sin), shape, 'float32', open()),
    ];
  };
  const shapes: readonly Shape[] = [
    [1, 2],
    [5, 6],
    [3, 7, 10],
    [2, 3, 8, 64],
    [1, 2, 2, 2, 3, 80],
    [2, 1024, 128],
  ];

  it.each(dtypes)('agrees with float64 in %s, and so does its gradient', (dtype) => {
    for (const shape of shapes) {
      t.scope(() => {
        const [cosine, sine] = tables(shape.at(-2)!, shape.at(-1)!);
        const x = sample(shape, { dtype, seed: 14 }, open());
        expectReference(
          (y) => rope(y!, cosine, sine),
          [x],
          (values) => ropeReference(values, cosine.toFlatArray(), sine.toFlatArray()),
        );
      });
    }
  });

  it.each(['float32', 'bfloat16'] as const)('reads strided, expanded and unaligned tables in %s', (dtype) => {
    t.scope(() => {
      const x = sample([2, 3, 8], { dtype, seed: 84 }, open());
      const [cosine, sine] = tables(4, 8);
      const flat = t.concat([t.zeros([1], { device: open() }), t.reshape(sine, [16])]);
      for (const [c, s] of [
        [t.transpose(t.contiguous(t.transpose(cosine))), t.slice(t.stack([sine, cosine], 1), 1, 0, 1)],
        [t.expand(t.slice(cosine, 0, 1, 2), [4, 4]), sine],
        [cosine, t.reshape(t.slice(flat, 0, 1), [4, 4])],
      ] as const) {
        const [cosines, sines] = [c, t.reshape(s, [4, 4])].map((table) => t.slice(table!, 0, 0, 3));
        const y = rope(x, cosines!, sines!).toFlatArray();
        expect(y).toEqual(rope(x, t.copy(cosines!), t.copy(sines!)).toFlatArray());
      }
    });
  });

  it.each(['float32', 'bfloat16'] as const)('reads heads, slices and other strided views in %s', (dtype) => {
    t.scope(() => {
      const x = sample([2, 7, 3, 16], { dtype, seed: 15 }, open());
      const views = [
        t.transpose(x, 1, 2),
        t.slice(t.transpose(x, 1, 2), -1, 4, 12),
        t.slice(t.transpose(x, 1, 2), -1, 1, 7),
        t.slice(t.transpose(x, 1, 2), -1, 0, 16, 2),
        t.permute(x, [3, 2, 1, 0]),
        t.slice(x, 1, 0, 6, 2),
        t.expand(t.slice(x, 2, 0, 1), [2, 7, 3, 16]),
        t.permute(t.view(x, [2, 7, 3, 2, 2, 4]), [4, 3, 0, 2, 1, 5]),
      ];
      for (const strided of views) {
        const [cosine, sine] = tables(strided.shape.at(-2)!, strided.shape.at(-1)!);
        const y = rope(strided, cosine, sine);
        expect(y.isContiguous).toBe(true);
        const expected = turn(strided.toFlatArray(), cosine.toFlatArray(), sine.toFlatArray(), 1);
        expect(relativeError(y.toFlatArray(), expected)).toBeLessThanOrEqual(4 * unitRoundoff[dtype]!);
      }
    });
  });

  it('turns more groups of matrices than a grid has rows', () => {
    t.scope(() => {
      const x = sample([4 * 65_540 + 1, 1, 2], { seed: 27 }, open());
      // By a right angle, which is exact.
      const [cosine, sine] = [0, 1].map((value) => tensorOf([value], [1, 1], 'float32', open()));
      expect(rope(x, cosine!, sine!).toFlatArray()).toEqual(turn(x.toFlatArray(), [0], [1], 1));
    });
  });

  it('has the gradient that finite differences show', () => {
    t.scope(() => {
      const [cosine, sine] = tables(3, 4);
      expectFiniteDifferences(
        (x) => rope(x, cosine, sine),
        [sample([2, 3, 4], { dtype: 'float64' }, open())],
      );
    });
  });

  it('names shapes and dtypes that do not fit', () => {
    t.scope(() => {
      const [cosine, sine] = tables(3, 4);
      expect(() => rope(sample([3, 5], {}, open()), cosine, sine)).toThrow('an even d, not [3, 5]');
      expect(() => rope(sample([2, 4], {}, open()), cosine, sine)).toThrow('cosine [3, 2] must be [2, 2]');
      expect(() => rope(sample([3, 4], {}, open()), t.cast(cosine, 'float64'), sine)).toThrow(
        'cosine must be float32',
      );
    });
  });
}
