import type { Backend, BackendCall, Outcome, PendingCall, RunningCall } from '../../src/group/backend.ts';
import { ProcessGroup } from '../../src/group/process-group.ts';

/** A backend that moves nothing: it notes the calls, and settles them when a test says so. */
export class InstantBackend implements Backend {
  readonly name = 'instant';
  readonly deviceType = 'cpu';
  readonly device = null;
  readonly programs = null;
  readonly symmetricMemory = null;
  readonly multiprocessors = 0;
  readonly ordersPairs: boolean;
  readonly calls: BackendCall[] = [];
  /** How many calls began together, each time. */
  readonly starts: number[] = [];
  isClosed = false;
  #settle: ((outcome: Outcome) => void)[] = [];
  readonly #outcome: Outcome | null;

  /** How each call ends, at once; null to leave it under way until `settle`. */
  constructor(outcome: Outcome | null = { status: 'done' }, ordersPairs = true) {
    this.ordersPairs = ordersPairs;
    this.#outcome = outcome;
  }

  start(calls: readonly PendingCall[]): RunningCall {
    this.starts.push(calls.length);
    for (const pending of calls) {
      this.calls.push(pending.call);
      if (this.#outcome) pending.onSettled(this.#outcome);
      else this.#settle.push((outcome) => pending.onSettled(outcome));
    }
    return { wait: () => this.settle() };
  }

  settle(outcome: Outcome = { status: 'done' }): void {
    for (const settle of this.#settle.splice(0)) settle(outcome);
  }

  /** Settles the oldest calls under way, each with an outcome of its own. */
  settleEach(outcomes: readonly Outcome[]): void {
    for (const [i, settle] of this.#settle.splice(0, outcomes.length).entries()) settle(outcomes[i]!);
  }

  close(): void {
    this.isClosed = true;
  }
}

/** A group of two on it, as rank 0 sees it; the world's ranks are 4 and 7. */
export function groupOn(backend: Backend, rank = 0): ProcessGroup {
  const regroup = (members: { ranks: readonly number[]; rank: number }) =>
    Promise.resolve(new ProcessGroup(members, backend, regroup, () => {}));
  return new ProcessGroup({ ranks: [4, 7], rank }, backend, regroup, () => {});
}
