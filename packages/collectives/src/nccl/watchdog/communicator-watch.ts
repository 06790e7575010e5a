import { setTimeout as sleep } from 'node:timers/promises';
import type { MessagePort } from 'node:worker_threads';
import { StoreError } from '../../errors.ts';
import { StoreClient } from '../../store/store-client.ts';
import { HostMemory } from '@roofline/cuda/host';
import { endCommunicators } from '../communicator.ts';
import { CommunicatorState } from '../communicator-state.ts';
import { ncclInProgress, ncclSuccess } from '../nccl-codes.ts';
import { ncclLibrary } from '../nccl-library.ts';
import { Alarms, answerMs } from './alarms.ts';
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
  /** What came of calls that were compared, in their order. */
  #checks: Promise<void> = Promise.resolve();
  #isEnding = false;
  #hasTold = false;

  constructor(order: WatchOrder, port: MessagePort) {
    this.#order = order;
    this.#port = port;
    this.#state = new CommunicatorState(order.state);
    this.#hasCompleted = eventQuery(order.deviceIndex);
  }

  /** Watches until the communicator is gone. */
  async run(): Promise<void> {
    const { store, prefix, rank, ranks, timeoutMs } = this.#order;
    const client = await StoreClient.connect(store);
    try {
      const alarms = new Alarms(client, prefix, rank, ranks.length);
      await alarms.answerOnceGone(client);
      this.#compareCalls(new CallCheck(client, prefix, rank, ranks), alarms);
      // Without the store no rank hears of anything, but a time limit still counts.
      const heard = alarms
        .hear(() => this.#state.attempted)
        .then(
          (failure) => this.#end(failure),
          () => {},
        );
      this.#state.noteWatched();
      await this.#look(alarms, Math.min(longestIntervalMs, Math.max(5, timeoutMs / 20)));
      // The other ranks may still ask how far this one was.
      await Promise.race([heard, sleep(answerMs)]);
    } finally {
      client.close();
      this.#port.close();
    }
  }

  async #look(alarms: Alarms, intervalMs: number): Promise<void> {
    let hasRaised = false;
    while (!this.#state.isAborted) {
      const trouble = hasRaised ? null : this.#trouble();
      if (trouble !== null) {
        hasRaised = true;
        await alarms.raise(trouble).catch(() => this.#end({ message: trouble, losses: [] }));
      }
      await sleep(intervalMs);
    }
  }

  /** What has gone wrong; null as long as nothing has. */
  #trouble(): string | null {
    const { communicator, guard, timeoutMs } = this.#order;
    if (!this.#state.tryEnter()) {
      // The other thread is inside. Unless the library blocks it, it notices by itself.
      return guard !== 0 && this.#state.insideMs > timeoutMs ? timedOut(timeoutMs) : null;
    }
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
    return timedOut(timeoutMs);
  }

  #compareCalls(check: CallCheck, alarms: Alarms): void {
    this.#port.on('message', (message: CheckMessage) => {
      if (!message.isAwaited) return void this.#compareContext(check, alarms, message);
      // Ranks may have sends and receives in different orders: what they say of one waits for no other.
      const compared = check.check(message, this.#order.timeoutMs).catch(() => null);
      this.#checks = this.#checks.then(async () => {
        const mismatch = await compared;
        if (mismatch) await this.#end(mismatch);
        else this.#state.noteChecked();
      });
    });
  }

  /** Without the store no rank hears of anything. */
  async #compareContext(check: CallCheck, alarms: Alarms, { description }: CheckMessage): Promise<void> {
    try {
      const difference = await check.checkContext(description);
      if (difference !== null) await alarms.raise(difference);
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
    }
  }

  async #end(failure: FailureMessage): Promise<void> {
    if (this.#isEnding) return;
    this.#isEnding = true;
    const { communicator, guard } = this.#order;
    // The other thread may be inside for as long as it takes to connect.
    while (!this.#state.tryEnter()) {
      if (this.#state.isAborted) return;
      if (guard !== 0) this.#free(failure);
      await sleep(1);
    }
    this.#tell(failure);
    endCommunicators(this.#state, communicator, guard);
    this.#state.leaveAborted();
  }

  /** Frees the thread that is blocked inside. */
  #free(failure: FailureMessage): void {
    this.#tell(failure);
    if (!this.#state.claimGuard()) return;
    ncclLibrary().functions.ncclCommAbort(this.#order.guard);
    this.#state.noteGuardGone();
  }

  #tell(failure: FailureMessage): void {
    if (this.#hasTold) return;
    this.#hasTold = true;
    this.#port.postMessage(failure, []);
    this.#state.noteFailure();
  }
}

function timedOut(timeoutMs: number): string {
  return `timed out after ${timeoutMs} ms`;
}
