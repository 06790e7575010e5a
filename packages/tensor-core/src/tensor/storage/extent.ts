import { type DType, byteSize } from '../../base/dtype.ts';
import type { Layout } from '../../base/shape.ts';
import type { Region } from './write-versions.ts';

/** The bytes of a storage from a layout's first element to the end of its last; those in between may belong to others. */
export function extentOf(layout: Layout & { readonly dtype: DType }): Region {
  const { shape, strides, offset, dtype } = layout;
  const bytes = byteSize(dtype);
  let elements = 1;
  for (let i = 0; i < shape.length; i++) {
    if (shape[i] === 0) return { start: offset * bytes, end: offset * bytes };
    elements += (shape[i]! - 1) * strides[i]!;
  }
  return { start: offset * bytes, end: (offset + elements) * bytes };
}

/** Whether two indices of a layout may be the same element, as after `expand`. */
export function overlapsItself({ shape, strides }: Layout): boolean {
  const walked = [];
  for (let i = 0; i < shape.length; i++) {
    if (shape[i] === 0) return false;
    if (shape[i]! > 1) walked.push({ length: shape[i]!, stride: strides[i]! });
  }
  walked.sort((a, b) => a.stride - b.stride);
  let extent = 0;
  for (const { length, stride } of walked) {
    if (stride <= extent) return true;
    extent += (length - 1) * stride;
  }
  return false;
}
