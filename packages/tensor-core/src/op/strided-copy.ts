import type { TypedArray } from '../base/dtype.ts';
import type { Layout } from '../base/shape.ts';

/** Copies the elements of `layout` in `source`, in row-major order, to the dense `target`. */
export function gather(source: TypedArray, layout: Layout, target: TypedArray): void {
  let next = 0;
  forEachRow(layout, (start, length, stride) => {
    for (let i = 0, from = start; i < length; i++, from += stride) target[next++] = source[from]!;
  });
}

/** Copies the dense `source` to the elements of `layout` in `target`. */
export function scatter(source: TypedArray, target: TypedArray, layout: Layout): void {
  let next = 0;
  forEachRow(layout, (start, length, stride) => {
    for (let i = 0, to = start; i < length; i++, to += stride) target[to] = source[next++]!;
  });
}

/** Calls `row` with the first index, the length and the stride of each row (along the last dimension). */
function forEachRow(layout: Layout, row: (start: number, length: number, stride: number) => void): void {
  const { shape, strides, offset } = layout;
  if (shape.includes(0)) return;
  const last = shape.length - 1;
  if (last < 0) return row(offset, 1, 1);
  const walk = (dimension: number, start: number): void => {
    if (dimension === last) return row(start, shape[last]!, strides[last]!);
    for (let i = 0; i < shape[dimension]!; i++) walk(dimension + 1, start + i * strides[dimension]!);
  };
  walk(0, offset);
}
