import type { DType } from '@roofline/tensor-core';

/** How the values of ranks become one. */
export const reductions = ['sum', 'product', 'min', 'max', 'average'] as const;
/** How the values of all ranks become one. */
export type Reduction = (typeof reductions)[number];

export type CollectiveKind =
  | 'allReduce'
  | 'broadcast'
  | 'reduce'
  | 'allGather'
  | 'reduceScatter'
  | 'allToAll'
  | 'gather'
  | 'scatter'
  | 'send'
  | 'recv'
  | 'barrier';

/** A call as a backend sees it: contiguous memory, and what all ranks must agree on. */
export interface BackendCall {
  readonly kind: CollectiveKind;
  readonly dtype: DType;
  readonly reduction: Reduction;
  /** The root, or the peer of a send or receive. */
  readonly root: number;
  /** Addresses; 0 for none. */
  readonly input: number;
  readonly output: number;
  /** Elements of the smaller of input and output: one rank's piece. */
  readonly count: number;
  /** The op with its dtype and shape: ranks whose texts differ did not call the same. */
  readonly description: string;
}

/** How a rank was lost: its connection broke, or it did not come in time. */
export type Loss = 'gone' | 'late';

export type Outcome =
  | { readonly status: 'done' }
  /** One description a rank; of a send or receive, the peer's alone. */
  | { readonly status: 'mismatch'; readonly descriptions: readonly string[] }
  | { readonly status: 'failed'; readonly losses: ReadonlyMap<number, Loss>; readonly message: string };

/** A call under way. */
export interface RunningCall {
  /** Blocks until it has settled, and tells the listener before it returns. */
  wait(): void;
}

/** What moves the bytes of a group: Gloo, for tensors of the CPU. */
export interface Backend {
  readonly name: string;
  /** The type of the devices whose tensors it takes. */
  readonly deviceType: 'cpu' | 'cuda';
  /** Begins a call and returns; calls run in the order of their start. `onSettled` is told once. */
  start(call: BackendCall, onSettled: (outcome: Outcome) => void): RunningCall;
  /** Ends the connections: what is under way fails. */
  close(): void;
}
