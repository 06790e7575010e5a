import type { CudaContext, KernelSpec, MemoryView } from '@roofline/tensor-core';
import { packageKernels } from '@roofline/tensor-core/native';

// These mirror kernels/multi_tensor.cu.
const maxTensors = 88;
const threads = 256;
const chunkElements = threads * 4 * 4;
const unusedFirstBlock = 0x7fffffff;
/** The table's alignment, to which the kernels pad it. */
const tableAlignment = 128;

/** A kernel of kernels/multi_tensor.cu; `parameters` follow the table. */
export function multiTensorKernel(name: string, parameters: string): KernelSpec {
  return { source: packageKernels(import.meta.url)('multi_tensor.cu'), name, parameters: `T${parameters}` };
}

/** Blocks that `launchOverTensors` starts for `tensors`, over all its launches. */
export function blocksOf(tensors: readonly MemoryView[]): number {
  return tensors.reduce((blocks, tensor) => blocks + Math.ceil(tensor.size / chunkElements), 0);
}

/**
 * Launches `spec` once for each 88 tensors. `lists[l][t]` is the tensor that plays role `l` for the `t`-th
 * element of the group; all of one `t` have one size. `rest` gives the arguments after the table, from the
 * numbers of blocks and of tensors in earlier launches.
 */
export function launchOverTensors(
  context: CudaContext,
  spec: KernelSpec,
  lists: readonly (readonly MemoryView[])[],
  rest: (blocksBefore: number, tensorsBefore: number) => readonly number[],
): void {
  const kernel = context.kernel(spec);
  const count = lists[0]!.length;
  let blocksBefore = 0;
  for (let from = 0; from < count; from += maxTensors) {
    const part = lists.map((tensors) => tensors.slice(from, from + maxTensors));
    const blocks = blocksOf(part[0]!);
    if (blocks === 0) continue;
    kernel.launch([blocks, 1, 1], threads, 0, [tensorTable(part), ...rest(blocksBefore, from)]);
    blocksBefore += blocks;
  }
}

// struct TensorTable: addresses by list, sizes, and the first block of each tensor.
function tableBytes(lists: number): number {
  return Math.ceil(((lists + 1) * maxTensors * 8 + maxTensors * 4) / tableAlignment) * tableAlignment;
}

function tensorTable(lists: readonly (readonly MemoryView[])[]): Uint8Array {
  const words = new Uint32Array(tableBytes(lists.length) / 4);
  const write64 = (index: number, value: number) => {
    words[2 * index] = value % 2 ** 32;
    words[2 * index + 1] = value / 2 ** 32;
  };
  const sizes = lists.length * maxTensors;
  const firstBlocks = 2 * (sizes + maxTensors);
  words.fill(unusedFirstBlock, firstBlocks);
  let block = 0;
  lists[0]!.forEach((tensor, t) => {
    lists.forEach((tensors, list) => write64(list * maxTensors + t, tensors[t]!.address));
    write64(sizes + t, tensor.size);
    words[firstBlocks + t] = block;
    block += Math.ceil(tensor.size / chunkElements);
  });
  return new Uint8Array(words.buffer);
}
