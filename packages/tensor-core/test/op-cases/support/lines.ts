import type { Shape } from '../../../src/index.ts';
import { sizeOf } from '../../../src/index.ts';

/** The flat positions of a row-major tensor along one dimension: one list for each index of the others, in row-major order. */
export function linesOf(shape: Shape, dimension: number): number[][] {
  const length = shape[dimension]!;
  const inner = sizeOf(shape.slice(dimension + 1));
  const outer = sizeOf(shape.slice(0, dimension));
  return Array.from({ length: outer * inner }, (_, line) => {
    const start = Math.floor(line / inner) * length * inner + (line % inner);
    return Array.from({ length }, (__, i) => start + i * inner);
  });
}

/** `shape` without a dimension. */
export function without(shape: Shape, dimension: number): number[] {
  return shape.filter((_, i) => i !== dimension);
}

/**
 * Shapes with a dimension to work along, one for each path of the kernels: rows of a warp, of a block, in pieces; columns,
 * many and few; one element.
 */
export const lineShapes: readonly [Shape, number][] = [
  [[7], 0],
  [[1, 1], 1],
  [[3, 5], 0],
  [[3, 5], 1],
  [[2, 3, 4], 1],
  [[5, 33], 1],
  [[3, 1024], 1],
  [[2, 3001], 1],
  [[1, 21000], 1],
  [[3, 40, 70], 1],
  [[1500, 3], 0],
];
