import { describeValue } from '@roofline/cuda/host';
import { refuseMore, requireTensor } from '../../op/require-tensor.ts';
import { ShapeError } from '../../base/errors.ts';
import { checkList, formatShape, normalizeDimension } from '../../base/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { slice } from './views.ts';

/**
 * Consecutive views of `x` along a dimension: of `lengths` elements each, the last with what is left, or of the lengths in a
 * list, which must sum to the whole. Throws a ShapeError.
 */
export function split(x: Tensor, lengths: number | readonly number[], dimension = 0, ...rest: []): Tensor[] {
  refuseMore('split', rest);
  requireTensor('split', x);
  const dim = normalizeDimension('split', dimension, x.rank);
  const whole = x.shape[dim]!;
  const list = typeof lengths === 'number' ? equalLengths(x, lengths, dim) : lengths;
  checkList('split', list);
  const sum = list.reduce((total, length) => total + length, 0);
  if (sum !== whole || list.some((length) => !Number.isInteger(length) || length < 0)) {
    throw new ShapeError(
      `split: the lengths ${formatShape(list)} must be whole numbers that sum to ${whole}, ` +
        `dimension ${dim} of ${formatShape(x.shape)}.`,
    );
  }
  let start = 0;
  return list.map((length) => slice(x, dim, start, (start += length)));
}

function equalLengths(x: Tensor, length: number, dimension: number): number[] {
  const whole = x.shape[dimension]!;
  if (!Number.isInteger(length) || length < 0 || (length === 0 && whole > 0)) {
    throw new ShapeError(
      `split: pieces of dimension ${dimension} of ${formatShape(x.shape)} have one element or more, not ${length}.`,
    );
  }
  const pieces = Math.max(1, Math.ceil(whole / Math.max(1, length)));
  return Array.from({ length: pieces }, (_, i) => Math.min(length, whole - i * length));
}

/**
 * At most `count` consecutive views of `x` along a dimension, all of one length except the last; fewer if the length does not
 * allow so many. Throws a ShapeError.
 */
export function chunk(x: Tensor, count: number, dimension = 0, ...rest: []): Tensor[] {
  refuseMore('chunk', rest);
  requireTensor('chunk', x);
  const dim = normalizeDimension('chunk', dimension, x.rank);
  if (!Number.isInteger(count) || count < 1) {
    throw new ShapeError(`chunk: takes a whole number of one or more pieces, not ${describeValue(count)}.`);
  }
  const whole = x.shape[dim]!;
  if (whole === 0) return split(x, new Array<number>(count).fill(0), dim);
  return split(x, Math.ceil(whole / count), dim);
}
