import { setTimeout as sleep } from 'node:timers/promises';
import type { MessagePort } from 'node:worker_threads';
import { StoreClient } from '../../store/store-client.ts';
import { HostMemory } from '@roofline/tensor-core/native';
import { CommunicatorState } from '../communicator-state.ts';
import { ncclInProgress, ncclSuccess } from '../nccl-codes.ts';
import { ncclLibrary } from '../nccl-library.ts';
import { Alarms } from './alarms.ts';
import { CallCheck } from './call-check.ts';
import { type EventQuery, eventQuery } from './event-query.ts';
import type { CheckMessage, FailureMessage, WatchOrder } from './messages.ts';

/** How often a watchdog looks, unless the time limit is short. */
const longestIntervalMs = 100;

/** One communicator, watched from another thread: the one that calls it may be blocked by its own stream. */
export class CommunicatorWatch {
  readonly #order: WatchOrder;
  readonly #port: MessagePort;
  readonly #state: CommunicatorState;
  readonly #hasCompleted: EventQuery;
  readonly #result = new HostMemory(8);
  #store: StoreClient | null = null;
  #hasRaised = false;
  /** The calls to be compared, one after the other. */
  #checks: Promise<void> = Promise.resolve();

  constructor(order: WatchOrder, port: MessagePort) {
    this.#order = order;
    this.#port = port;
    this.#state = new CommunicatorState(order.state);
    this.#hasCompleted = eventQuery(order.deviceIndex);
  }

  /** Watches until the communicator is gone. */
  async run(): Promise<void> {
    const { store, prefix, rank, size, timeoutMs } = this.#order;
    try {
      this.#store = await StoreClient.connect(store);
      const alarms = new Alarms(this.#store, prefix, rank, size);
      this.#compareCalls(new CallCheck(this.#store, prefix, rank), alarms);
      // Without the store nobody hears of anything, but a time limit still counts.
      alarms
        .hear(() => this.#state.started)
        .then(
          (failure) => this.#end(failure),
          () => this.#closeStore(),
        );
      await this.#look(alarms, Math.min(longestIntervalMs, Math.max(5, timeoutMs / 20)));
    } finally {
      this.#closeStore();
      this.#port.close();
    }
  }

  async #look(alarms: Alarms, intervalMs: number): Promise<void> {
    while (!this.#state.isAborted) {
      const trouble = this.#hasRaised ? null : this.#trouble();
      if (trouble !== null) await this.#raise(alarms, trouble);
      await sleep(intervalMs);
    }
  }

  /** What has gone wrong; null as long as nothing has. */
  #trouble(): string | null {
    const { communicator, timeoutMs } = this.#order;
    // The other thread is inside: it notices by itself.
    if (!this.#state.tryEnter()) return null;
    try {
      const { functions, describe } = ncclLibrary();
      const call = functions.ncclCommGetAsyncError(communicator, this.#result.address);
      const result = call === ncclSuccess ? this.#result.readInt32(0) : call;
      if (result !== ncclSuccess && result !== ncclInProgress) return describe(result, communicator);
    } finally {
      this.#state.leave();
    }
    let oldest = this.#state.oldest();
    while (oldest && this.#hasCompleted(oldest.event)) {
      this.#state.completeUpTo(oldest.number);
      oldest = this.#state.oldest();
    }
    if (!oldest || Date.now() - oldest.startedMs < timeoutMs) return null;
    return `timed out after ${timeoutMs} ms`;
  }

  async #raise(alarms: Alarms, message: string, losses?: FailureMessage['losses']): Promise<void> {
    this.#hasRaised = true;
    try {
      await alarms.raise(message, losses);
    } catch {
      await this.#end({ message, losses: losses ?? [] });
    }
  }

  #compareCalls(check: CallCheck, alarms: Alarms): void {
    this.#port.on('message', (message: CheckMessage) => {
      this.#checks = this.#checks.then(async () => {
        const mismatch = await check.check(message, this.#order.timeoutMs).catch(() => null);
        if (mismatch && !this.#state.isAborted) await this.#raise(alarms, mismatch.message, mismatch.losses);
      });
    });
  }

  async #end(failure: FailureMessage): Promise<void> {
    // The other thread may be inside for as long as it takes to connect.
    while (!this.#state.tryEnter()) {
      if (this.#state.isAborted) return;
      await sleep(1);
    }
    this.#state.noteFailure();
    this.#port.postMessage(failure);
    ncclLibrary().functions.ncclCommAbort(this.#order.communicator);
    this.#state.leaveAborted();
  }

  #closeStore(): void {
    this.#store?.close();
    this.#store = null;
  }
}
