import type { MemoryView } from '../../../base/memory-view.ts';
import type { HostArray, HostLowering } from '../../../op/cpu-lowering.ts';
import { type TypedArray, byteSize, typedArray, viewAs } from '../../../base/dtype.ts';
import type { ComputeOp } from '../../../op/op.ts';
import type { CpuBuffer } from '../../../onnx/buffer-pool.ts';
import { gather, scatter } from '../../../op/strided-copy.ts';

/** The memory behind a tensor of the CPU device. */
export function bufferOf(tensor: MemoryView): CpuBuffer {
  return tensor.storage.buffer as CpuBuffer;
}

/** All elements of a tensor's storage, not copied. */
export function storageElements({ storage, dtype }: MemoryView): TypedArray {
  const { memory, byteOffset } = storage.buffer as CpuBuffer;
  return viewAs(dtype, memory, byteOffset, Math.floor(storage.byteLength / byteSize(dtype)));
}

/** Runs an op in JavaScript. Strided tensors are copied in, and out again where the op writes them. */
export function runHostLowering<A>(
  op: ComputeOp<A>,
  lowering: HostLowering<A>,
  inputs: readonly MemoryView[],
  outputs: readonly MemoryView[],
  attributes: A,
): void {
  const sources = inputs.map(hostArray);
  // An output that is an input written in place must be the same array, even if that is a copy.
  const targets = outputs.map((output, i) => {
    const mutated = op.mutates?.[i];
    return mutated === undefined ? hostArray(output) : sources[mutated]!;
  });
  lowering.run(sources, targets, attributes);
  outputs.forEach((output, i) => {
    if (!output.isContiguous) scatter(targets[i]!.data, storageElements(output), output);
  });
}

function hostArray(tensor: MemoryView): HostArray {
  const { shape, dtype, size, offset } = tensor;
  if (!tensor.isContiguous) {
    const data = typedArray(dtype, size);
    gather(storageElements(tensor), tensor, data);
    return { shape, dtype, data };
  }
  const { memory, byteOffset } = bufferOf(tensor);
  return { shape, dtype, data: viewAs(dtype, memory, byteOffset + offset * byteSize(dtype), size) };
}
