import { ShapeError } from './errors.ts';
import { describeValue } from '@roofline/cuda/host';

/** The lengths of the dimensions, the outermost first; none for a scalar. */
export type Shape = readonly number[];

/** How a tensor lies in its storage; strides and offset count elements. */
export interface Layout {
  readonly shape: Shape;
  readonly strides: Shape;
  readonly offset: number;
}

/** The number of elements of `shape`. Throws a ShapeError for what is no list. */
export function sizeOf(shape: Shape): number {
  if (!Array.isArray(shape)) throw notAList('sizeOf', shape);
  let size = 1;
  for (let i = 0; i < shape.length; i++) size *= shape[i]!;
  return size;
}

/** Row-major strides of a contiguous tensor. */
export function contiguousStrides(shape: Shape): number[] {
  const strides = new Array<number>(shape.length);
  let stride = 1;
  for (let i = shape.length - 1; i >= 0; i--) {
    strides[i] = stride;
    stride *= shape[i]!;
  }
  return strides;
}

/** Whether elements lie in row-major order without gaps; dimensions of size one, and of no elements, have any stride. */
export function isContiguous(shape: Shape, strides: Shape): boolean {
  let expected = 1;
  for (let i = shape.length - 1; i >= 0; i--) {
    const length = shape[i]!;
    if (length === 1) continue;
    if (strides[i] !== expected) return shape.includes(0);
    expected *= length;
  }
  return true;
}

/** Whether two shapes have the same lengths in the same order; nothing is broadcast. */
export function sameShape(a: Shape, b: Shape): boolean {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/** As `[2, 3]`. Throws a ShapeError for what is no list. */
export function formatShape(shape: Shape): string {
  checkList('formatShape', shape);
  return `[${shape.map(String).join(', ')}]`;
}

/** NumPy's broadcasting of two shapes. Throws a ShapeError that names `op`. */
export function broadcastShapes(op: string, a: Shape, b: Shape): Shape {
  if (sameShape(a, b)) return a;
  const rank = Math.max(a.length, b.length);
  const result = new Array<number>(rank);
  for (let i = 1; i <= rank; i++) {
    const lengthA = a[a.length - i] ?? 1;
    const lengthB = b[b.length - i] ?? 1;
    if (lengthA !== lengthB && lengthA !== 1 && lengthB !== 1) {
      throw new ShapeError(
        `${op}: shapes ${formatShape(a)} and ${formatShape(b)} do not broadcast: ` +
          `dimension ${rank - i} is ${lengthA} and ${lengthB}; they must be equal, or one of them 1.`,
      );
    }
    result[rank - i] = lengthA === 1 ? lengthB : lengthA;
  }
  return result;
}

/** Strides that read a tensor of `shape` as if it had `target`, repeating without a copy. */
export function broadcastStrides(shape: Shape, strides: Shape, target: Shape): number[] {
  const lead = target.length - shape.length;
  return target.map((length, i) => {
    const own = i - lead;
    return own < 0 || (shape[own] === 1 && length !== 1) ? 0 : strides[own]!;
  });
}

/**
 * A dimension given from the front (0..rank-1) or the back (-1 is the last), as one from the front. Throws a ShapeError
 * that names `op`.
 */
export function normalizeDimension(op: string, dimension: number, rank: number): number {
  if (Number.isInteger(dimension)) {
    const normalized = dimension < 0 ? dimension + rank : dimension;
    if (normalized >= 0 && normalized < rank) return normalized;
  }
  const given = typeof dimension === 'number' ? dimension : describeValue(dimension);
  throw new ShapeError(
    rank === 0
      ? `${op}: a tensor without dimensions has no dimension ${given}; unsqueeze() or reshape() it first.`
      : `${op}: dimension ${given} is outside a tensor of rank ${rank}; take one of ${-rank}..${rank - 1}.`,
  );
}

/** Throws a ShapeError unless every length is a whole number of zero or more, and so is their product below 2^53. */
export function checkShape(op: string, shape: Shape): void {
  checkList(op, shape);
  for (const length of shape) {
    if (!Number.isInteger(length) || length < 0) {
      throw new ShapeError(
        `${op}: ${formatShape(shape)} is no shape; every length must be a whole number >= 0.`,
      );
    }
  }
  if (!shape.includes(0) && !Number.isSafeInteger(sizeOf(shape))) {
    throw new ShapeError(`${op}: ${formatShape(shape)} has more elements than any memory.`);
  }
}

/** Throws a ShapeError unless `list` is a list, as shapes and orders of dimensions are. */
export function checkList(op: string, list: readonly number[]): void {
  if (!Array.isArray(list)) throw notAList(op, list);
}

function notAList(op: string, list: unknown): ShapeError {
  return new ShapeError(`${op}: takes a list of whole numbers such as [2, 3], not ${describeValue(list)}.`);
}

/** Throws a ShapeError unless `value`, which `what` names, is a whole number. */
export function checkWhole(op: string, what: string, value: number): void {
  if (Number.isSafeInteger(value)) return;
  throw new ShapeError(`${op}: ${what} must be a whole number, not ${describeValue(value)}.`);
}
