import { refuseMore, requireTensor } from '../../op/require-tensor.ts';
import { ShapeError } from '../../base/errors.ts';
import { formatShape, normalizeDimension, sizeOf } from '../../base/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { reshape } from './views.ts';

/**
 * The dimensions from `start` to `end`, both included, as one; all of them by default. A tensor without dimensions gets one. A
 * view if the elements are dense, otherwise a copy. Throws a ShapeError.
 */
export function flatten(x: Tensor, start = 0, end = -1, ...rest: []): Tensor {
  requireTensor('flatten', x);
  refuseMore('flatten', rest);
  const rank = Math.max(1, x.rank);
  const first = normalizeDimension('flatten', start, rank);
  const last = normalizeDimension('flatten', end, rank);
  if (first > last) {
    throw new ShapeError(
      `flatten: dimension ${start} of ${formatShape(x.shape)} lies behind ${end}; give the first one first.`,
    );
  }
  const merged = sizeOf(x.shape.slice(first, last + 1));
  return reshape(x, [...x.shape.slice(0, first), merged, ...x.shape.slice(last + 1)]);
}
