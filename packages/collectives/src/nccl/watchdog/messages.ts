import type { MessagePort } from 'node:worker_threads';
import type { Loss } from '../../group/backend.ts';
import type { StoreClientOptions } from '../../store/store-client.ts';

/** What a communicator's watchdog must know. */
export interface WatchOrder {
  readonly communicator: number;
  /** What frees a thread that is blocked inside, where it is aborted; 0 for none. */
  readonly guard: number;
  /** The buffer of its CommunicatorState. */
  readonly state: SharedArrayBuffer;
  /** The GPU, as the driver counts. */
  readonly deviceIndex: number;
  readonly rank: number;
  /** The world's ranks, in the order of the group. */
  readonly ranks: readonly number[];
  readonly timeoutMs: number;
  readonly store: StoreClientOptions;
  /** Begins the keys of this group. */
  readonly prefix: string;
}

/** An order, and where its outcome is reported. */
export interface WatchMessage {
  readonly order: WatchOrder;
  readonly port: MessagePort;
}

/** A call to be compared with those of the other ranks. */
export interface CheckMessage {
  readonly description: string;
  /** Of a send or receive: who sends to whom. */
  readonly pair: { readonly from: number; readonly to: number } | null;
  /** Whether calls are done only once all ranks' have been compared; else it is a context that is. */
  readonly isAwaited: boolean;
}

/** Why a communicator was ended; written before its state says that it was. */
export interface FailureMessage {
  readonly message: string;
  readonly losses: readonly (readonly [rank: number, loss: Loss])[];
}
