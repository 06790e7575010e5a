import type { Device } from '../devices/device.ts';
import type { Place } from '../host/user-place.ts';
import type { ExplainedCall } from './explained-call.ts';
import type { ComputeOp } from '../op/op.ts';
import type { OpenRange } from '../op/range.ts';
import type { StoredMemory, TensorSpec } from '../op/memory-view.ts';
import type { DType } from '../tensor/dtype.ts';
import type { Layout } from '../tensor/shape.ts';
import type { Storage } from '../tensor/storage/storage.ts';
import type { Tensor } from '../tensor/tensor.ts';

/** A tensor of a program: how it lies in one of the program's storages, which have numbers. */
export interface Operand extends Layout, TensorSpec {
  readonly storage: number;
  /** Elements. */
  readonly size: number;
  readonly byteLength: number;
  readonly isContiguous: boolean;
}

/** One call of an op. Where it mutates, the output is the input. */
export interface Call {
  readonly op: ComputeOp<never>;
  readonly inputs: readonly Operand[];
  readonly outputs: readonly Operand[];
  readonly attributes: unknown;
  /** Which of a run's live attributes are this call's; null where they stay. See `applyLive`. */
  readonly live: number | null;
  /** Where the user's code called it; of those alone that errors name later, for a stack takes long to look at. */
  readonly place?: Place | null;
  /** The innermost of the ranges around it in the function; those around that are not among them. */
  readonly range: OpenRange | null;
  /** The calls that it does the work of, in their order, where it is several in one. */
  readonly members?: readonly Call[];
}

/** Where a storage comes from: the program itself makes it, or it is given before each run. */
export type StorageSource =
  | { readonly kind: 'made' }
  /** The elements of the call's tensor of this index, contiguous. */
  | { readonly kind: 'argument'; readonly index: number }
  /** Of a tensor that the function found outside: a parameter, say. */
  | { readonly kind: 'captured'; readonly storage: Storage }
  /** Filled by the host from numbers in the program's text, as `arange` is. */
  | { readonly kind: 'constant'; readonly storage: Storage }
  /** The gradient that a leaf has when a run begins. */
  | { readonly kind: 'gradient'; readonly leaf: Tensor }
  /**
   * Kept by a GPU's program from run to run: what these casts of captured parameters would make, and others would make
   * parts of again.
   */
  | { readonly kind: 'copy'; readonly casts: readonly Call[]; readonly repeated: readonly Call[] };

export interface ProgramStorage {
  readonly byteLength: number;
  /** Of the first tensor that was seen in it. */
  readonly dtype: DType;
  readonly source: StorageSource;
  /** Whether an op that ran by itself would have it as a workspace. */
  readonly isWorkspace?: boolean;
}

/** What a function did, as ops over numbered storages, in its order. */
export interface Program {
  /** Of the function; empty where it has none. */
  readonly name: string;
  readonly device: Device;
  readonly calls: readonly Call[];
  readonly storages: readonly ProgramStorage[];
  /** Made storages whose contents outlive a run: those of results and of gradients. */
  readonly kept: ReadonlySet<number>;
  /** Of these, the gradients', and whose they are. A runner may give the same storage at each run. */
  readonly gradients: ReadonlyMap<number, Tensor>;
  /** Given storages that calls write. */
  readonly written: ReadonlySet<number>;
  /** How many calls the function made; some of them nobody needs. */
  readonly tracedCalls: number;
  /** The most bytes that tensors made by the function held at a time, when it ran eagerly. */
  readonly eagerPeakBytes: number;
}

/** The attributes of a call in a run with these live ones. */
export function attributesOf({ attributes, live }: Call, liveAttributes: readonly unknown[]): unknown {
  return live === null ? attributes : liveAttributes[live];
}

/** The live attributes of one run. They are asked for in the program's order, none before it is needed: a run may fail. */
export class LiveAttributes {
  readonly #next: readonly (() => unknown)[];
  readonly #asked: unknown[] = [];

  /** `next` gives what every run asks for anew, in the program's order, also for calls that are not run. */
  constructor(next: readonly (() => unknown)[]) {
    this.#next = next;
  }

  /** The attributes of a call in this run. */
  of({ attributes, live }: Call): unknown {
    return live === null ? attributes : this.#askUpTo(live)[live];
  }

  /** In the program's order, also those of calls that are not run. */
  all(): readonly unknown[] {
    return this.#askUpTo(this.#next.length - 1);
  }

  #askUpTo(index: number): readonly unknown[] {
    while (this.#asked.length <= index) this.#asked.push(this.#next[this.#asked.length]!());
    return this.#asked;
  }
}

/** The arguments, by their indices, that a program writes. */
export function writtenArguments({ storages, written }: Pick<Program, 'storages' | 'written'>): number[] {
  return [...written].flatMap((number) => {
    const { source } = storages[number]!;
    return source.kind === 'argument' ? [source.index] : [];
  });
}

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
  run(bindings: ReadonlyMap<number, Binding>, live: LiveAttributes): Map<number, Storage>;
  /** Told behind a run, once its writes count as writes of the given storages. */
  writesNoted?(): void;
  /** Whether the last run, which threw, had written nothing of them; without it none is sure of that. */
  readonly wroteNothing?: boolean;
  /** Frees what it holds. */
  dispose(): void;
}
