import type { StoredMemory } from '../../base/memory-view.ts';
import type { Storage } from '../../tensor/storage/storage.ts';
import type { ExplainedCall } from './explained-call.ts';
import type { PerRunAttributes } from './per-run-attributes.ts';

/** Where a given storage lies for one run. */
export interface Binding {
  readonly storage: StoredMemory;
  /** Where in it the program's storage begins. */
  readonly byteOffset: number;
}

/** What a device has made of a program. */
export interface RunnerFacts {
  /** What the host starts at each run: on a GPU one graph, on the CPU ONNX graphs and ops that run by themselves. */
  readonly launches: number;
  /** Kernels, copies and fills of a GPU's graph, once it has run; nodes of ONNX graphs and such ops on the CPU. */
  readonly nodes: number | null;
  /** As many as it would be with each fused op by itself; at least that many. Null where `nodes` is. */
  readonly nodesBefore: number | null;
  /** Every call as the device runs it, in its order. */
  readonly table: readonly ExplainedCall[];
  /** Names of ops that are one kernel, with the number of kernels of each name. */
  readonly fused: ReadonlyMap<string, number>;
  /** Calls that would do again what an earlier one has done, and are left out. */
  readonly repeatedCalls: number;
  /** Bytes that fused ops hand on in registers: a write and a read less of each in every run. */
  readonly bytesInRegisters: number;
  /** Casts of parameters that no run makes: it finds them as optimizers have left them. */
  readonly carriedCasts: number;
  /** Bytes that these casts would move in every run, less those that optimizers write for them. */
  readonly carriedBytes: number;
  /** Products that add to something, which eager code does in a call of its own. */
  readonly accumulatedProducts: number;
  /** Products that are parts of another one, with which they share an operand. */
  readonly mergedProducts: number;
  /** Bytes of operands that merged products do not read again. */
  readonly operandBytesSaved: number;
  /** Bytes that the program holds on the device between its runs. */
  readonly arenaBytes: number;
}

/** Of a device that runs each op as it is, over memory that it allocates as it goes. */
export const nothingSpared = {
  repeatedCalls: 0,
  bytesInRegisters: 0,
  carriedCasts: 0,
  carriedBytes: 0,
  accumulatedProducts: 0,
  mergedProducts: 0,
  operandBytesSaved: 0,
  arenaBytes: 0,
} as const;

/** How a device makes a program ready. */
export interface PrepareOptions {
  /** See `CompileOptions`. */
  readonly autotune: boolean;
}

/** A program made ready to run on its device. */
export interface ProgramRunner {
  /** Whether observers are told of each run as a whole. */
  readonly tellsReplays: boolean;
  facts(): RunnerFacts;
  /**
   * Runs it over the given storages, of which the captured ones are watched. Returns the kept storages by number, one
   * reference of each, the caller's.
   */
  run(bindings: ReadonlyMap<number, Binding>, live: PerRunAttributes): Map<number, Storage>;
  /** Told behind a run, once its writes count as writes of the given storages. */
  writesNoted?(): void;
  /** Whether the last run, which threw, had written nothing of them; without it none is sure of that. */
  readonly wroteNothing?: boolean;
  /** Frees what it holds. */
  dispose(): void;
}
