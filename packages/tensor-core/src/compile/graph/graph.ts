import type { Device } from '../../tensor/device.ts';
import type { Place } from '../../base/host/user-place.ts';
import type { ComputeOp } from '../../op/op.ts';
import type { OpenRange } from '../../tensor/ranges/range.ts';
import type { TensorSpec } from '../../base/memory-view.ts';
import type { DType } from '../../base/dtype.ts';
import type { Layout } from '../../base/shape.ts';
import type { Storage } from '../../tensor/storage/storage.ts';
import type { Tensor } from '../../tensor/tensor.ts';

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
  /** Where the user's code called it. Known of those alone that errors may name: to look at a stack takes long. */
  readonly place?: Place | null;
  /** The innermost range that the function opened around it; those that are open around the function do not count. */
  readonly range: OpenRange | null;
  /** The calls that it does the work of, in their order, where it is several in one. */
  readonly members?: readonly Call[];
}

/** Where a storage comes from: the program itself makes it, or it is given before each run. */
export type StorageSource =
  | { readonly kind: 'made' }
  /** The memory of the call's tensor of this index, from its first element to its last. */
  | { readonly kind: 'argument'; readonly index: number }
  /** Of a tensor that the function found outside: a parameter, say. */
  | { readonly kind: 'captured'; readonly storage: Storage }
  /** Filled by the host from numbers in the program's text, as `arange` is. */
  | { readonly kind: 'constant'; readonly storage: Storage }
  /** The gradient that a leaf has when a run begins. */
  | { readonly kind: 'gradient'; readonly leaf: Tensor }
  /**
   * Kept by a GPU's program from run to run: `casts` of captured parameters would make it, and `repeated` ones parts of it
   * again.
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

/** The arguments, by their indices, that a program writes. */
export function writtenArguments({ storages, written }: Pick<Program, 'storages' | 'written'>): number[] {
  return [...written].flatMap((number) => {
    const { source } = storages[number]!;
    return source.kind === 'argument' ? [source.index] : [];
  });
}
