import type { Device } from '../../tensor/device.ts';
import type { Place } from '@roofline/cuda/host';
import type { ComputeOp } from '../../op/op.ts';
import type { OpenRange } from '../../tensor/ranges/range.ts';
import type { TensorSpec } from '../../base/memory-view.ts';
import type { DType } from '../../base/dtype.ts';
import type { Layout } from '../../base/shape.ts';
import type { Storage } from '../../tensor/storage/storage.ts';
import type { Tensor } from '../../tensor/tensor.ts';

/** A tensor of a graph: a layout in one of the graph's storages, which are numbered. */
export interface Operand extends Layout, TensorSpec {
  readonly storage: number;
  /** Elements. */
  readonly size: number;
  readonly byteLength: number;
  readonly isContiguous: boolean;
}

/** One call of an op. Where the op mutates, the output is the input. */
export interface Call {
  readonly op: ComputeOp<never>;
  readonly inputs: readonly Operand[];
  readonly outputs: readonly Operand[];
  readonly attributes: unknown;
  /** The index of its attributes among those that each run asks for again; null where they stay. See `applyLive`. */
  readonly live: number | null;
  /** Where the user's code called it. Known only for calls that errors may name, as reading a stack is slow. */
  readonly place?: Place | null;
  /** The innermost range that the function opened around it; ranges around the function itself do not count. */
  readonly range: OpenRange | null;
  /** The calls fused into it, in their order. */
  readonly members?: readonly Call[];
}

/** Where a storage comes from: the graph makes it, or it is given before each run. */
export type StorageSource =
  | { readonly kind: 'made' }
  /** The memory of the argument of this index, from its first element to its last. */
  | { readonly kind: 'argument'; readonly index: number }
  /** Of a tensor that the function found outside, such as a parameter. */
  | { readonly kind: 'captured'; readonly storage: Storage }
  /** Filled by the host from numbers in the function's text, as `arange` is. */
  | { readonly kind: 'constant'; readonly storage: Storage }
  /** The gradient that a leaf has when a run begins. */
  | { readonly kind: 'gradient'; readonly leaf: Tensor }
  /**
   * On a GPU, kept from run to run: a low-precision copy of captured parameters, in place of `casts` in each run, and of
   * `repeated` ones, which would make parts of it again.
   */
  | { readonly kind: 'copy'; readonly casts: readonly Call[]; readonly repeated: readonly Call[] };

export interface GraphStorage {
  readonly byteLength: number;
  /** Of the first tensor seen in it. */
  readonly dtype: DType;
  readonly source: StorageSource;
  /** Whether it would be a workspace if the op ran eagerly. */
  readonly isWorkspace?: boolean;
}

/** What a function did: calls of ops on numbered storages, in an order that respects their dependencies. */
export interface Graph {
  /** Of the function; empty if it has none. */
  readonly name: string;
  readonly device: Device;
  readonly calls: readonly Call[];
  readonly storages: readonly GraphStorage[];
  /** Made storages whose contents outlive a run: those of results and of gradients. */
  readonly kept: ReadonlySet<number>;
  /** Those of gradients, with their leaves. An executable may give the same storage in each run. */
  readonly gradients: ReadonlyMap<number, Tensor>;
  /** Given storages that calls write. */
  readonly written: ReadonlySet<number>;
  /** How many calls the function made, dead ones included. */
  readonly tracedCalls: number;
  /** Peak bytes of tensors made by the function, run eagerly. */
  readonly eagerPeakBytes: number;
}

/** The indices of the arguments that a graph writes. */
export function writtenArguments({ storages, written }: Pick<Graph, 'storages' | 'written'>): number[] {
  return [...written].flatMap((number) => {
    const { source } = storages[number]!;
    return source.kind === 'argument' ? [source.index] : [];
  });
}
