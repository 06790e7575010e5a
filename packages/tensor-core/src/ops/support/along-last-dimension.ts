import { scope } from '../../tensor/lifetime/scope.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { reshape, transpose } from '../shape/views.ts';
import { dimensionOf } from './one-dimension.ts';

/**
 * Applies `fn`, which works along the last dimension, along another one, through transposed views. A scalar is a row of one.
 */
export function alongLastDimension(
  op: string,
  x: Tensor,
  dimension: number,
  fn: (x: Tensor) => Tensor,
): Tensor {
  const dim = dimensionOf(op, x, dimension);
  if (x.rank === 0) return scope(() => reshape(fn(reshape(x, [1])), []));
  if (dim === x.rank - 1) return fn(x);
  return scope(() => transpose(fn(transpose(x, dim, -1)), dim, -1));
}
