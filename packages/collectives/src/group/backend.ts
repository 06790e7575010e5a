import type { DType, Device, DeviceBuffer } from '@roofline/tensor-core';

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
  | 'shift'
  | 'send'
  | 'recv'
  | 'barrier';

/** A call as a backend sees it: contiguous memory, and what all ranks must agree on. */
export interface BackendCall {
  readonly kind: CollectiveKind;
  readonly dtype: DType;
  readonly reduction: Reduction;
  /** The root, the peer of a send or receive, or by how many ranks a shift goes. */
  readonly root: number;
  /** Addresses; 0 for none. */
  readonly input: number;
  readonly output: number;
  /** Elements of the smaller of input and output: one rank's piece. */
  readonly count: number;
  /** The op with its dtype and shape: ranks whose texts differ did not call the same. */
  readonly description: string;
  /** Whether those texts are compared though the group does not compare its calls. */
  readonly isCompared: boolean;
  /** The memory that it reads and writes. */
  readonly buffers: readonly DeviceBuffer[];
  /** On a GPU, whether it is queued in order with the ops of the current stream, rather than alongside them. */
  readonly onCurrentStream: boolean;
}

/** A call that a backend is to begin, and what it notifies, once, of the outcome. */
export interface PendingCall {
  readonly call: BackendCall;
  onSettled(outcome: Outcome): void;
}

/** How a rank was lost: its connection broke, it did not come in time, or it called something else. */
export type Loss = 'gone' | 'late' | 'differs';

/** By `performance.now()`. */
export interface TimeSpan {
  readonly startMs: number;
  readonly endMs: number;
}

export type Outcome =
  /** `ran` is when its data moved, for backends that know: from when all ranks had come, to its end. */
  | { readonly status: 'done'; readonly ran?: TimeSpan }
  /** One description a rank; of a send or receive, the peer's alone. */
  | { readonly status: 'mismatch'; readonly descriptions: readonly string[] }
  | Failure;

export interface Failure {
  readonly status: 'failed';
  readonly losses: ReadonlyMap<number, Loss>;
  readonly message: string;
}

/** Calls under way. */
export interface RunningCall {
  /**
   * On the CPU: blocks until they have settled, and notifies their listeners before it returns. On a GPU: makes what is
   * queued from now on wait for their results, and returns at once.
   */
  wait(): void;
}

/** Calls that are part of CUDA graphs, which run with each launch. */
export interface CapturedPrograms {
  /** Why no graph can run any more, or null. */
  failure(): Failure | null;
  /** Puts calls, as one, on the current stream, which is being captured. Gives why that failed, or null. */
  capture(calls: readonly BackendCall[]): Failure | null;
  /**
   * Lets `launch` queue a graph on the current stream, after all calls so far; `program` is given its outcome, once. Gives why
   * no graph can run any more, or null.
   */
  launch(program: LaunchedProgram, launch: () => void): Failure | null;
  /** Calls `drop`, which frees a graph, before the connections end, for which no graph may be left. Gives what undoes that. */
  beforeEnd(drop: () => void): () => void;
}

/** One launch of a graph. */
export interface LaunchedProgram extends Pick<PendingCall, 'onSettled'> {
  /** What ranks whose calls are compared must have alike. */
  readonly description: string;
}

/** What a rank offers the others to reach memory of it: a value that JSON holds; null for nothing. */
export type MemoryOffer = object | null;

/** Memory of a tensor. */
export interface SharedMemory {
  readonly address: number;
  readonly byteLength: number;
  /** Whether it still is that tensor's, which may be gone, or have been let go and brought back elsewhere. */
  isHere(): boolean;
}

/** Memory of all ranks that each of them reaches: calls on it need no copies between them. */
export interface SymmetricMemory {
  /** What others must know to reach these addresses. */
  offer(addresses: readonly number[]): MemoryOffer;
  /** What came of opening the offers of all ranks, in their order; null where one of them is out of reach. */
  open(offers: readonly MemoryOffer[]): readonly (readonly number[])[] | null;
  /** Lets calls on memory that all ranks have opened work there. */
  add(memory: readonly SharedMemory[], opened: readonly (readonly number[])[]): void;
}

/** What moves the bytes of a group: Gloo, for tensors of the CPU, and NCCL, for those of a GPU. */
export interface Backend {
  readonly name: string;
  /** The type of the devices whose tensors it takes. */
  readonly deviceType: 'cpu' | 'cuda';
  /** The only device whose tensors it takes; null where any of the type will do. */
  readonly device: Device | null;
  /** Whether sends and receives run in the order of all calls, rather than alongside the others. */
  readonly ordersPairs: boolean;
  /** What runs calls as part of CUDA graphs; null where there are none. */
  readonly programs: CapturedPrograms | null;
  /** What lets ranks reduce in each other's memory; null where none can. */
  readonly symmetricMemory: SymmetricMemory | null;
  /** How many multiprocessors its calls take from what they run beside on a GPU; 0 where that is unknown. */
  readonly multiprocessors: number;
  /** Begins calls, several as one, and returns; they run in the order of their start. */
  start(calls: readonly PendingCall[]): RunningCall;
  /** Ends the connections: what is under way fails. */
  close(): void;
}
