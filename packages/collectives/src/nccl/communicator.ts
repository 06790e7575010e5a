import { HostMemory } from '@roofline/cuda/host';
import { setTimeout as sleep } from 'node:timers/promises';
import { configFor } from './communicator-config.ts';
import { CommunicatorState } from './communicator-state.ts';
import { ncclInProgress, ncclSuccess } from './nccl-codes.ts';
import { type NcclFunctions, ncclLibrary, uniqueIdBytes } from './nccl-library.ts';

export interface CommunicatorPlace {
  readonly rank: number;
  readonly size: number;
  readonly uniqueId: Uint8Array;
  readonly timeoutMs: number;
}

/** The first with ncclCommSplit. */
const splittingVersion = 21_800;
const pollMs = 1;
/** A call that does not block is done some 50 µs later; a sleep takes a thousand. */
const spinMs = 0.5;

/** A new id for the ranks of a communicator: one makes it, and the store brings it to the others. */
export function createUniqueId(): Uint8Array {
  const { functions, describe } = ncclLibrary();
  const memory = new HostMemory(uniqueIdBytes);
  const result = functions.ncclGetUniqueId(memory.address);
  if (result !== ncclSuccess) throw new Error(describe(result, 0));
  return memory.bytes.slice(0, uniqueIdBytes);
}

/**
 * An ncclComm_t.
 *
 * Ranks connect without blocking, so that one that never comes costs a time limit and not the process. Calls are made on
 * a second communicator, split off the first, which blocks: one that does not starts a thread for each call, which takes
 * longer than the call. The two share their end (splitShare), so that the watchdog can free a thread that is blocked in a
 * call by aborting the first, the guard, which no thread is inside of. NCCL before 2.18 cannot split: its calls do not
 * block and are asked for their results.
 */
export class Communicator {
  readonly state = new CommunicatorState();
  readonly #place: CommunicatorPlace;
  readonly #result = new HostMemory(8);
  /** What ncclCommInitRankConfig made; the guard once calls go to another. */
  readonly #first: number;
  #split = 0;

  /** Begins to connect; `connected` says when that is done. The GPU must be current. Throws an Error. */
  constructor(place: CommunicatorPlace) {
    this.#place = place;
    const { functions, describe, versionNumber } = ncclLibrary();
    const out = new HostMemory(8);
    const settings = configFor({ blocking: false, splitShare: true }, versionNumber);
    const init = functions.ncclCommInitRankConfig as (...arguments_: readonly unknown[]) => number;
    const result = init(out.address, place.size, { internal: place.uniqueId }, place.rank, settings.address);
    this.#first = out.readUint64(0);
    if (result !== ncclSuccess && result !== ncclInProgress) {
      if (this.#first !== 0) functions.ncclCommAbort(this.#first);
      throw new Error(describe(result, 0));
    }
  }

  /** Where calls go. */
  get handle(): number {
    return this.#split || this.#first;
  }

  /** The communicator whose end frees a thread that is blocked in a call; 0 where calls do not block. */
  get guard(): number {
    return this.#split === 0 ? 0 : this.#first;
  }

  /** Resolves once all ranks have come. Throws an Error where they do not in time, or NCCL fails; the rest is gone then. */
  async connected(): Promise<void> {
    const deadline = performance.now() + this.#place.timeoutMs;
    let result = await this.#firstIsReady(deadline);
    if (result === ncclSuccess && ncclLibrary().versionNumber >= splittingVersion)
      result = await this.#splitOff(deadline);
    if (result === ncclSuccess) return;
    const why = this.#describe(result);
    this.abort();
    throw new Error(why);
  }

  async #firstIsReady(deadline: number): Promise<number> {
    let result = this.#asyncErrorOf(this.#first);
    while (result === ncclInProgress && performance.now() < deadline) {
      await sleep(pollMs);
      result = this.#asyncErrorOf(this.#first);
    }
    return result;
  }

  async #splitOff(deadline: number): Promise<number> {
    const { functions, versionNumber } = ncclLibrary();
    const out = new HostMemory(8);
    const settings = configFor({ blocking: true, splitShare: false }, versionNumber);
    const { rank } = this.#place;
    const begun = functions.ncclCommSplit(this.#first, 0, rank, out.address, settings.address);
    if (begun !== ncclSuccess && begun !== ncclInProgress) return begun;
    const result = await this.#firstIsReady(deadline);
    if (result === ncclSuccess) this.#split = out.readUint64(0);
    return result;
  }

  /**
   * Runs calls of the library, in one group where they are several. Gives null, or why it failed: then `abort`. Other ranks may capture
   * the same calls more often: those do not count.
   */
  enqueue(
    calls: readonly ((functions: NcclFunctions) => number)[],
    { isCaptured }: { readonly isCaptured: boolean },
  ): string | null {
    if (!isCaptured) this.state.noteAttempt();
    if (!this.state.enterUnlessFailed()) return 'the communicator has been aborted';
    try {
      const result = this.#finished(this.#resultOf(calls));
      return result === ncclSuccess ? null : this.#describe(result);
    } finally {
      this.state.leave();
    }
  }

  #resultOf(calls: readonly ((functions: NcclFunctions) => number)[]): number {
    const { functions } = ncclLibrary();
    if (calls.length === 1) return calls[0]!(functions);
    if (calls.length === 0) return ncclSuccess;
    // A group that has begun must end, whatever becomes of its calls.
    return worst([
      functions.ncclGroupStart(),
      ...calls.map((call) => call(functions)),
      functions.ncclGroupEnd(),
    ]);
  }

  /** Waits while the library is still at it: the first call connects the ranks. */
  #finished(begun: number): number {
    if (begun !== ncclInProgress) return begun;
    const startMs = performance.now();
    let result = begun;
    for (;;) {
      result = this.#asyncErrorOf(this.handle);
      const waitedMs = performance.now() - startMs;
      if (result !== ncclInProgress || waitedMs > this.#place.timeoutMs) return result;
      if (waitedMs > spinMs) Atomics.wait(idle, 0, 0, pollMs);
    }
  }

  /** What has gone wrong since, an ncclResult_t. */
  #asyncErrorOf(handle: number): number {
    const result = ncclLibrary().functions.ncclCommGetAsyncError(handle, this.#result.address);
    return result === ncclSuccess ? this.#result.readInt32(0) : result;
  }

  /** Ends what is under way and frees it. Once is enough; more does nothing. */
  abort(): void {
    if (!this.state.enter()) return;
    this.state.noteFailure();
    endCommunicators(this.state, this.handle, this.guard);
    this.state.leaveAborted();
  }

  #describe(result: number): string {
    if (result === ncclInProgress) return `timed out after ${this.#place.timeoutMs} ms`;
    return ncclLibrary().describe(result, this.handle);
  }
}

/** Frees a communicator that no thread is inside of, and its guard, if it has one that is not gone. */
export function endCommunicators(state: CommunicatorState, handle: number, guard: number): void {
  const { ncclCommAbort } = ncclLibrary().functions;
  // They share memory, so their ends must not meet.
  const isGuardLeft = guard !== 0 && state.claimGuard();
  ncclCommAbort(handle);
  if (!isGuardLeft) return;
  ncclCommAbort(guard);
  state.noteGuardGone();
}

/** The first error, or else whether one is still in progress. */
function worst(results: readonly number[]): number {
  const isError = (result: number) => result !== ncclSuccess && result !== ncclInProgress;
  return results.find(isError) ?? Math.max(ncclSuccess, ...results);
}

const idle = new Int32Array(new SharedArrayBuffer(4));
