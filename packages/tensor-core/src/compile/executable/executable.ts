import type { StoredMemory } from '../../base/memory-view.ts';
import type { Storage } from '../../tensor/storage/storage.ts';
import type { ExplainedCall } from './explained-call.ts';
import type { PerRunAttributes } from './per-run-attributes.ts';

/** Where a given storage is in one run. */
export interface Binding {
  readonly storage: StoredMemory;
  /** Where in it the graph's storage begins. */
  readonly byteOffset: number;
}

/** What a device has made of a graph. */
export interface ExecutableFacts {
  /** What the host starts in each run: on a GPU one CUDA graph, on the CPU ONNX graphs and ops that run by themselves. */
  readonly launches: number;
  /** Kernels, copies and fills of the CUDA graph, null before the first run; on the CPU nodes of ONNX graphs and single ops. */
  readonly nodes: number | null;
  /** How many `nodes` there would be without fusion, at least; null where `nodes` is. */
  readonly nodesBefore: number | null;
  /** Every call as the device runs it, in its order. */
  readonly table: readonly ExplainedCall[];
  /** How many calls of each fused op there are, by its name. */
  readonly fused: ReadonlyMap<string, number>;
  /** Calls dropped because an earlier one has done the same. */
  readonly repeatedCalls: number;
  /** Bytes that fused ops pass on in registers; each run saves a write and a read of them. */
  readonly bytesInRegisters: number;
  /** Casts of parameters that no run makes, because optimizers keep low-precision copies up to date. */
  readonly carriedCasts: number;
  /** Bytes that these casts would move in every run, less those that optimizers write for them. */
  readonly carriedBytes: number;
  /** Products with an addition fused into them, a call of its own in eager code. */
  readonly accumulatedProducts: number;
  /** Products merged into another one that shares an operand. */
  readonly mergedProducts: number;
  /** Bytes of operands that merged products do not read again. */
  readonly operandBytesSaved: number;
  /** Gradients of parameters that an optimizer's kernel multiplies itself, so that they are never in memory. */
  readonly multipliedGradients: number;
  /** Calls beyond those that a run without a `memoryBudget` makes, so that what they make need not be kept. */
  readonly callsMadeAgain: number;
  /** FLOPs beyond those of such a run. */
  readonly flopsMadeAgain: number;
  /** Calls on a branch of the CUDA graph, which may run at the same time as others; `waitedForBy` in the table says which. */
  readonly callsBeside: number;
  /** Bytes held on the device between runs. */
  readonly arenaBytes: number;
}

/** For a device that runs each op as it is, in memory allocated as it goes. */
export const nothingSpared = {
  repeatedCalls: 0,
  bytesInRegisters: 0,
  carriedCasts: 0,
  carriedBytes: 0,
  accumulatedProducts: 0,
  mergedProducts: 0,
  operandBytesSaved: 0,
  multipliedGradients: 0,
  callsMadeAgain: 0,
  flopsMadeAgain: 0,
  callsBeside: 0,
  arenaBytes: 0,
} as const;

export const branchChoices = ['auto', 'always', 'never'] as const;
/** How a schedule chooses what runs at the same time as other calls; see `CompileOptions`. */
export type BranchChoice = (typeof branchChoices)[number];

/** How a device compiles a graph. */
export interface ExecutableOptions {
  /** See `CompileOptions`. */
  readonly autotune: boolean;
  /** See `CompileOptions`. */
  readonly branches: BranchChoice;
  /** In bytes; see `CompileOptions`. Undefined for none. */
  readonly memoryBudget?: number | undefined;
}

/** A graph ready to run on its device. */
export interface Executable {
  /** Whether it reports each run to observers as one replay. */
  readonly tellsReplays: boolean;
  facts(): ExecutableFacts;
  /**
   * Runs it on the given storages, of which the captured ones are watched. Returns the kept storages by number, with one
   * reference to each for the caller.
   */
  run(bindings: ReadonlyMap<number, Binding>, live: PerRunAttributes): Map<number, Storage>;
  /** Called after a run, once its writes are recorded on the given storages. */
  writesNoted?(): void;
  /** Whether the last run, which threw, had written nothing to them; undefined where that is not known. */
  readonly wroteNothing?: boolean;
  /** Frees what it holds. */
  dispose(): void;
}
