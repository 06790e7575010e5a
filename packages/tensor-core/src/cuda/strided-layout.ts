import { ShapeError } from '../errors.ts';
import { type Shape, formatShape } from '../shape.ts';

/** The most dimensions that strided kernels walk, after neighbours that lie dense have been merged. */
export const maxRank = 8;
const maxOperands = 12;

/**
 * How several operands of one iteration space lie in memory, with as few dimensions as possible. Dimension 0
 * is the innermost. One object is filled again for every call, because eager ops may not allocate.
 */
export class StridedLayout {
  rank = 0;
  /** Elements of the whole space. */
  size = 0;
  operands = 0;
  readonly lengths = new Float64Array(maxRank);
  /** Of operand o in dimension d at [o · maxRank + d], in elements; 0 repeats. */
  readonly strides = new Float64Array(maxOperands * maxRank);

  strideAt(operand: number, dimension: number): number {
    return this.strides[operand * maxRank + dimension]!;
  }

  /** One more than the largest offset, in elements, that `operand` reaches. */
  extentOf(operand: number): number {
    let extent = 1;
    for (let d = 0; d < this.rank; d++) extent += (this.lengths[d]! - 1) * this.strideAt(operand, d);
    return extent;
  }
}

/**
 * Fills `layout` with operands that are read or written with broadcasting over `shape`. Throws a ShapeError
 * if more than `maxRank` dimensions remain.
 */
export function collapse(
  layout: StridedLayout,
  shape: Shape,
  shapes: readonly Shape[],
  strides: readonly Shape[],
): void {
  const count = shapes.length;
  let rank = 0;
  let size = 1;
  for (let dimension = shape.length - 1; dimension >= 0; dimension--) {
    const length = shape[dimension]!;
    size *= length;
    if (length === 1) continue;
    const merges = rank > 0 && canMerge(layout, rank - 1, shape, dimension, shapes, strides);
    if (merges) {
      layout.lengths[rank - 1]! *= length;
      continue;
    }
    if (rank === maxRank) {
      throw new ShapeError(
        `${formatShape(shape)} has more than ${maxRank} dimensions that cannot be merged; call contiguous() first.`,
      );
    }
    layout.lengths[rank] = length;
    for (let o = 0; o < count; o++) {
      layout.strides[o * maxRank + rank] = broadcastStride(shape, dimension, shapes[o]!, strides[o]!);
    }
    rank++;
  }
  if (rank === 0) {
    layout.lengths[0] = 1;
    for (let o = 0; o < count; o++) layout.strides[o * maxRank] = 0;
    rank = 1;
  }
  layout.rank = rank;
  layout.size = size;
  layout.operands = count;
}

function canMerge(
  layout: StridedLayout,
  inner: number,
  shape: Shape,
  dimension: number,
  shapes: readonly Shape[],
  strides: readonly Shape[],
): boolean {
  for (let o = 0; o < shapes.length; o++) {
    const expected = layout.strides[o * maxRank + inner]! * layout.lengths[inner]!;
    if (broadcastStride(shape, dimension, shapes[o]!, strides[o]!) !== expected) return false;
  }
  return true;
}

/** The stride of an operand along a dimension of the space that it is broadcast to. */
function broadcastStride(shape: Shape, dimension: number, own: Shape, ownStrides: Shape): number {
  const ownDimension = dimension - shape.length + own.length;
  if (ownDimension < 0 || own[ownDimension] === 1) return 0;
  return ownStrides[ownDimension]!;
}
