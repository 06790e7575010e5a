import { deepStrictEqual, ok } from 'node:assert/strict';
import {
  type DType,
  type Shape,
  type Tensor,
  reshape,
  sizeOf,
  slice,
  tensor,
  zeros,
} from '@roofline/tensor-core';

export const travelling = ['float32', 'float16', 'bfloat16', 'float64', 'int32', 'int64'] as const;

/** Small whole numbers, exact in every dtype even when a few are multiplied; others on each rank. */
export function numbersOf(rank: number, size: number): number[] {
  return Array.from({ length: size }, (_, i) => ((i * 3 + rank * 5 + 3) % 7) - 3);
}

export function tensorOf(values: readonly number[], shape: Shape, dtype: DType): Tensor {
  if (sizeOf(shape) === 0) return zeros(shape, { dtype });
  return reshape(tensor(values, { dtype }), shape);
}

/** The same values in a layout that is not contiguous: every second column of a wider tensor. */
export function stridedOf(
  values: readonly number[],
  [rows, columns]: readonly [number, number],
  dtype: DType,
): Tensor {
  const wide = Array.from({ length: rows }, (_, i) =>
    Array.from({ length: columns * 2 }, (_, j) => (j % 2 === 0 ? values[i * columns + j / 2]! : 99)),
  );
  const strided = slice(tensor(wide, { dtype }), 1, 0, columns * 2, 2);
  ok(!strided.isContiguous);
  return strided;
}

export function expectValues(what: string, x: Tensor, values: readonly number[]): void {
  deepStrictEqual(
    x.toFlatArray().map((value) => value + 0),
    values.map((value) => value + 0),
    what,
  );
}
