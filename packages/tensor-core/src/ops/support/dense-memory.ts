import type { CudaContext } from '../../op/cuda-lowering.ts';
import type { StridedMemory, TensorSpec } from '../../base/memory-view.ts';
import { byteSize } from '../../base/dtype.ts';
import { contiguousStrides, sizeOf } from '../../base/shape.ts';

/** Memory for a dense tensor of that dtype and shape, until the current op is queued. */
export function denseWorkspace(context: CudaContext, { dtype, shape }: TensorSpec): StridedMemory {
  const address = context.workspace(sizeOf(shape) * byteSize(dtype));
  return { address, dtype, shape, strides: contiguousStrides(shape) };
}

/** A dense copy of `x` until the current op is queued, for kernels that cannot read its layout. */
export function denseCopy(
  context: CudaContext,
  { address, dtype, shape, strides }: StridedMemory,
): StridedMemory {
  const copy = denseWorkspace(context, { dtype, shape });
  context.copy({ address, dtype, shape, strides }, copy);
  return copy;
}
