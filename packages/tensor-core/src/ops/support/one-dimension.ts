import { requireTensor } from '../../op/require-tensor.ts';
import type { MemoryView, StridedMemory } from '../../base/memory-view.ts';
import { type Shape, normalizeDimension, sizeOf } from '../../base/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';

/** A dense tensor as [outer, length, inner] around one of its dimensions. */
export interface Extents {
  readonly outer: number;
  readonly length: number;
  readonly inner: number;
}

/** Around `dimension`, or around all dimensions as one for null; a tensor without dimensions has one element. */
export function extentsAround(shape: Shape, dimension: number | null): Extents {
  if (dimension === null || shape.length === 0) return { outer: 1, length: sizeOf(shape), inner: 1 };
  return {
    outer: sizeOf(shape.slice(0, dimension)),
    length: shape[dimension]!,
    inner: sizeOf(shape.slice(dimension + 1)),
  };
}

/**
 * A dimension counted from the front; a tensor without dimensions accepts 0 and -1, as in PyTorch. Throws a ShapeError or
 * DTypeError.
 */
export function dimensionOf(op: string, x: Tensor, dimension: number): number {
  requireTensor(op, x);
  return normalizeDimension(op, dimension, Math.max(1, x.rank));
}

// Fewer columns would be too few threads for a GPU, each with long work.
const fewColumns = 4096;
const longColumn = 1024;

/** Whether kernels that give each column of [outer, length, inner] one thread would leave most of a GPU idle. */
export function columnsAreFew({ outer, length, inner }: Extents): boolean {
  return outer * inner < fewColumns && length > longColumn;
}

/** The elements at `address`, with the middle dimension of `extents` moved last. */
export function middleLast(
  { dtype }: MemoryView,
  address: number,
  { outer, length, inner }: Extents,
): StridedMemory {
  return { address, dtype, shape: [outer, inner, length], strides: [length * inner, 1, inner] };
}
