import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { Device, DType, Tensor } from '../../../src/index.ts';
import { addmmInPlaceOp, addmmOp } from '../../../src/ops/matrix/addmm.ts';
import { relativeError, sample, unitRoundoff } from '../support/samples.ts';

/** Shapes of a and b, and the product's; b is given transposed in the last. */
const shapes = [
  [[64, 48], [48, 32], [64, 32]],
  [[2, 5, 16], [16, 24], [2, 5, 24]],
  [[3, 2, 8, 16], [3, 2, 16, 8], [3, 2, 8, 8]],
  [[2, 5, 16], [24, 16], [2, 5, 24]],
] as const; // prettier-ignore
const dtypes = ['float16', 'bfloat16'] as const satisfies readonly DType[];
const cases = shapes.flatMap((shape, i) =>
  dtypes.flatMap((dtype) =>
    [dtype, 'float32' as const].map((sum) => ({ shape, dtype, sum, transposeB: i === 3 })),
  ),
);

/** c + scale · a · b against float64, where it is rounded once. */
export function describeAddmm(device: () => Device): void {
  describe('addmm', () => {
    it.each(cases)('adds $dtype products $shape to $sum', ({ shape: [a, b, c], dtype, sum, transposeB }) => {
      t.scope(() => {
        const draw = (shape: readonly number[], to: DType, seed: number) =>
          sample([...shape], { dtype: to, seed }, device());
        const [left, right, added] = [draw(a, dtype, 1), draw(b, dtype, 2), draw(c, sum, 3)];
        const wide = [left, right, added].map((x) => t.cast(x, 'float64').to('cpu'));
        const product = t.matmul(wide[0]!, transposeB ? t.transpose(wide[1]!) : wide[1]!, { scale: 0.5 });
        const exact = t.add(wide[2]!, product).toFlatArray() as number[];
        const attributes = { scale: 0.5, transposeB };
        // Sums are kept in float32. Where the library splits them it may round a product before it adds, in place or not.
        const bound = 2 * (unitRoundoff[sum]! + Math.sqrt(a.at(-1)!) * unitRoundoff.float32!);
        const isNear = (x: Tensor) =>
          expect(relativeError(x.toFlatArray() as number[], exact)).toBeLessThan(bound);
        isNear(t.apply(addmmOp, [left, right, added], attributes)[0]!);
        t.noGrad(() => t.apply(addmmInPlaceOp, [left, right, added], attributes));
        isNear(added);
      });
    });

    it('adds nothing where sums have no terms', () => {
      const [a, b] = [
        t.zeros([2, 0], { dtype: 'float16', device: device() }),
        t.zeros([0, 3], { dtype: 'float16', device: device() }),
      ];
      const c = t.ones([2, 3], { device: device() });
      expect(t.apply(addmmOp, [a, b, c], { scale: 1 })[0]!.toArray()).toEqual([[1, 1, 1], [1, 1, 1]]); // prettier-ignore
    });

    it('refuses operands of float32 and sums of other shapes', () => {
      const ones = (shape: number[], dtype: DType) => t.ones(shape, { dtype, device: device() });
      const wide = [ones([2, 2], 'float32'), ones([2, 2], 'float32'), ones([2, 2], 'float32')];
      expect(() => t.apply(addmmOp, wide, { scale: 1 })).toThrow(/float16 or bfloat16, not float32; use add/);
      const low = [ones([2, 2], 'float16'), ones([2, 2], 'float16'), ones([2], 'float16')];
      expect(() => t.apply(addmmOp, low, { scale: 1 })).toThrow(
        /c \[2\] must be of the product's shape \[2, 2\]/,
      );
    });
  });
}
