import { type Tensor, keep, scope, slice, view } from '@roofline/tensor-core';

/** Where kernels that load several elements at once want a tensor to begin. */
const alignmentBytes = 64;

/** So many elements, and as many more as the next tensor needs to begin where kernels want it. */
export function alignedSize(elements: number, elementBytes: number): number {
  const alignment = alignmentBytes / elementBytes;
  return Math.ceil(elements / alignment) * alignment;
}

/** The element at which each tensor begins in flat memory where they lie one after the other, and how long that is. */
export function layOut(
  tensors: readonly Pick<Tensor, 'size'>[],
  elementBytes: number,
): { readonly starts: readonly number[]; readonly size: number } {
  let size = 0;
  const starts = tensors.map((tensor) => {
    const start = size;
    size += alignedSize(tensor.size, elementBytes);
    return start;
  });
  return { starts, size };
}

/** What lies at `start` of flat memory, in a tensor's shape. */
export function viewAt(flat: Tensor, start: number, { size, shape }: Pick<Tensor, 'size' | 'shape'>): Tensor {
  return scope(() => keep(view(slice(flat, 0, start, start + size), shape)));
}
