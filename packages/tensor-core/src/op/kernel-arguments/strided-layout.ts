import { ShapeError } from '../../base/errors.ts';
import { type Shape, formatShape } from '../../base/shape.ts';

/** The most dimensions that strided kernels walk, after dense neighbours have been merged. */
export const maxRank = 16;
const maxOperands = 12;

/** A tensor that is read or written with broadcasting over an iteration space; strides count elements. */
export interface StridedOperand {
  readonly shape: Shape;
  readonly strides: Shape;
}

/**
 * The memory layout of several operands of one iteration space, with as few dimensions as possible. Dimension 0 is the
 * innermost. One object is reused for every call, because eager ops should not allocate.
 */
export class StridedLayout {
  rank = 0;
  /** Elements of the iteration space. */
  size = 0;
  operands = 0;
  readonly lengths = new Float64Array(maxRank);
  /** The stride of operand o in dimension d is at [o · maxRank + d], in elements; 0 repeats. */
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
export function collapse(layout: StridedLayout, shape: Shape, operands: readonly StridedOperand[]): void {
  const count = operands.length;
  let rank = 0;
  let size = 1;
  for (let dimension = shape.length - 1; dimension >= 0; dimension--) {
    const length = shape[dimension]!;
    size *= length;
    if (length === 1) continue;
    const merges = rank > 0 && canMerge(layout, rank - 1, shape, dimension, operands);
    if (merges) {
      layout.lengths[rank - 1]! *= length;
      continue;
    }
    if (rank === maxRank) {
      throw new ShapeError(
        `${formatShape(shape)} has more than ${maxRank} dimensions that cannot be merged; reshape() it to fewer first.`,
      );
    }
    layout.lengths[rank] = length;
    for (let o = 0; o < count; o++) {
      layout.strides[o * maxRank + rank] = broadcastStride(shape, dimension, operands[o]!);
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
  operands: readonly StridedOperand[],
): boolean {
  for (let o = 0; o < operands.length; o++) {
    const expected = layout.strides[o * maxRank + inner]! * layout.lengths[inner]!;
    if (broadcastStride(shape, dimension, operands[o]!) !== expected) return false;
  }
  return true;
}

/** The stride of an operand along a dimension of the space that it is broadcast to. */
function broadcastStride(shape: Shape, dimension: number, operand: StridedOperand): number {
  const own = dimension - shape.length + operand.shape.length;
  return own < 0 || operand.shape[own] === 1 ? 0 : operand.strides[own]!;
}
