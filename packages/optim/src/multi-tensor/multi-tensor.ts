import type { CudaContext, KernelSpec, MemoryView } from '@roofline/tensor-core';
import type { KernelArguments, KernelParameters, KernelVariants } from '@roofline/cuda';
import { storageType } from '@roofline/tensor-core/kernel-api';
import { kernelFile, noDefines } from '../kernel-file.ts';

// These mirror kernels/multi_tensor.cuh.
/** As many tensors as the parameters of a launch have room for. */
const maxTensors = (lists: number) => (lists < 5 ? 88 : 76);
const threads = 256;
const chunkElements = threads * 4 * 4;
const unusedFirstBlock = 0x7fffffff;
/** The table's alignment, to which the kernels pad it. */
const tableAlignment = 128;

/** Copies in lower precision of the first list, one for each tensor, null for none; all of one dtype. */
export type Copies = readonly (MemoryView | null)[];

/** A kernel over many tensors, whose table comes first among its parameters. */
export class MultiTensorKernel<const P extends KernelParameters> {
  readonly #plain: KernelVariants;
  readonly #copying: KernelVariants;

  /** `parameters` follow the table. */
  constructor(name: string, parameters: P) {
    const all = { table: 'struct', ...parameters } as const;
    this.#plain = kernelFile(name, all);
    this.#copying = kernelFile(name, all);
  }

  get spec(): KernelSpec {
    return this.#plain(noDefines);
  }

  /** For an update, the variant that also writes copies of the first list in this dtype. */
  copying(dtype: MemoryView['dtype']): KernelSpec {
    return this.#copying({ COPY: storageType(dtype) });
  }

  byName(table: Uint8Array, values: KernelArguments<P>): (number | Uint8Array)[] {
    return this.#plain.byName({ table, ...values });
  }
}

/** The arguments after the table, from the numbers of blocks and of tensors in earlier launches. */
export type ArgumentsOfLaunch<P extends KernelParameters> = (
  blocksBefore: number,
  tensorsBefore: number,
) => KernelArguments<P>;

/** `launchOverTensors` for an update, with the copies that it is to write. */
export function launchUpdate<P extends KernelParameters>(
  context: CudaContext,
  kernel: MultiTensorKernel<P>,
  lists: readonly (readonly MemoryView[])[],
  copies: Copies | undefined,
  argumentsOf: ArgumentsOfLaunch<P>,
): void {
  const copy = copies?.find((each) => each !== null);
  if (copy) launchOverTensors(context, kernel, [...lists, copies!], argumentsOf, kernel.copying(copy.dtype));
  else launchOverTensors(context, kernel, lists, argumentsOf);
}

/** Blocks that `launchOverTensors` starts for `tensors`, over all its launches. */
export function blocksOf(tensors: readonly MemoryView[]): number {
  return tensors.reduce((blocks, tensor) => blocks + Math.ceil(tensor.size / chunkElements), 0);
}

/**
 * Launches a kernel once for each 88 tensors, or 76 of five lists. `lists[l][t]` is the tensor that plays role `l` for the
 * `t`-th element of the group; all of one `t` have one size, and after the first list null is the address 0.
 */
export function launchOverTensors<P extends KernelParameters>(
  context: CudaContext,
  kernel: MultiTensorKernel<P>,
  lists: readonly Copies[],
  argumentsOf: ArgumentsOfLaunch<P>,
  spec = kernel.spec,
): void {
  const loaded = context.kernel(spec);
  for (const { blocks, blocksBefore, from, table } of launchesFor(spec, lists))
    loaded.launch([blocks, 1, 1], threads, 0, kernel.byName(table, argumentsOf(blocksBefore, from)));
}

/** A launch over the tensors from `from` on, after others of the same group. */
interface TensorLaunch {
  readonly blocks: number;
  readonly blocksBefore: number;
  readonly from: number;
  readonly table: Uint8Array;
}

/**
 * By their first list, which belongs to one call and its other lists: a compiled program's replay finds the tables made.
 */
const prepared = new WeakMap<
  Copies,
  { readonly spec: KernelSpec; readonly launches: readonly TensorLaunch[] }
>();

function launchesFor(spec: KernelSpec, lists: readonly Copies[]): readonly TensorLaunch[] {
  const known = prepared.get(lists[0]!);
  if (known?.spec === spec) return known.launches;
  const tensors = lists[0] as readonly MemoryView[];
  const most = maxTensors(lists.length);
  const launches: TensorLaunch[] = [];
  let blocksBefore = 0;
  for (let from = 0; from < tensors.length; from += most) {
    const blocks = blocksOf(tensors.slice(from, from + most));
    if (blocks === 0) continue;
    const table = tensorTable(lists.map((list) => list.slice(from, from + most)));
    launches.push({ blocks, blocksBefore, from, table });
    blocksBefore += blocks;
  }
  prepared.set(lists[0]!, { spec, launches });
  return launches;
}

// struct TensorTable: addresses by list, sizes, and the first block of each tensor.
function tableBytes(lists: number): number {
  const entryBytes = (lists + 1) * 8 + 4;
  return Math.ceil((maxTensors(lists) * entryBytes) / tableAlignment) * tableAlignment;
}

function tensorTable(lists: readonly Copies[]): Uint8Array {
  const most = maxTensors(lists.length);
  const words = new Uint32Array(tableBytes(lists.length) / 4);
  const write64 = (index: number, value: number) => {
    words[2 * index] = value % 2 ** 32;
    words[2 * index + 1] = value / 2 ** 32;
  };
  const sizes = lists.length * most;
  const firstBlocks = 2 * (sizes + most);
  words.fill(unusedFirstBlock, firstBlocks);
  let block = 0;
  lists[0]!.forEach((tensor, t) => {
    const { size } = tensor!;
    lists.forEach((tensors, list) => write64(list * most + t, tensors[t]?.address ?? 0));
    write64(sizes + t, size);
    words[firstBlocks + t] = block;
    block += Math.ceil(size / chunkElements);
  });
  return new Uint8Array(words.buffer);
}
