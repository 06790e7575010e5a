import { HostMemory } from '@roofline/tensor-core/native';
import { setTimeout as sleep } from 'node:timers/promises';
import { CommunicatorState } from './communicator-state.ts';
import { ncclInProgress, ncclSuccess } from './nccl-codes.ts';
import { type NcclFunctions, ncclLibrary, uniqueIdBytes } from './nccl-library.ts';

export interface CommunicatorPlace {
  readonly rank: number;
  readonly size: number;
  readonly uniqueId: Uint8Array;
  readonly timeoutMs: number;
}

/** Calls that do not block, so that a peer that never comes costs a time limit and not the process. */
const blocking = 0;
/** Of ncclConfig_t as NCCL 2.14 has it: later fields keep their defaults. */
const config = { bytes: 24, magic: 0xcafebeef, version: 21_400 } as const;
const pollMs = 1;

/** A new id for the ranks of a communicator: one makes it, and the store brings it to the others. */
export function createUniqueId(): Uint8Array {
  const { functions, describe } = ncclLibrary();
  const memory = new HostMemory(uniqueIdBytes);
  const result = functions.ncclGetUniqueId(memory.address);
  if (result !== ncclSuccess) throw new Error(describe(result, 0));
  return memory.bytes.slice(0, uniqueIdBytes);
}

/** An ncclComm_t. */
export class Communicator {
  readonly handle: number;
  readonly state = new CommunicatorState();
  readonly #timeoutMs: number;
  readonly #result = new HostMemory(8);

  /** Begins to connect; `connected` tells when that is done. The GPU must be current. Throws an Error. */
  constructor({ rank, size, uniqueId, timeoutMs }: CommunicatorPlace) {
    this.#timeoutMs = timeoutMs;
    const { functions, describe } = ncclLibrary();
    const out = new HostMemory(8);
    const settings = configOf();
    const init = functions.ncclCommInitRankConfig as (...arguments_: readonly unknown[]) => number;
    const result = init(out.address, size, { internal: uniqueId }, rank, settings.address);
    this.handle = out.readUint64(0);
    if (result !== ncclSuccess && result !== ncclInProgress) {
      if (this.handle !== 0) functions.ncclCommAbort(this.handle);
      throw new Error(describe(result, 0));
    }
  }

  /** Resolves once all ranks have come. Throws an Error where they do not in time, or NCCL fails; the rest is gone then. */
  async connected(): Promise<void> {
    const deadline = performance.now() + this.#timeoutMs;
    let result = this.asyncError();
    while (result === ncclInProgress && performance.now() < deadline) {
      await sleep(pollMs);
      result = this.asyncError();
    }
    if (result === ncclSuccess) return;
    const why = this.#describe(result);
    this.abort();
    throw new Error(why);
  }

  /** Runs calls of the library, in one group where they are several. Gives null, or why it failed: then `abort`. */
  enqueue(calls: readonly ((functions: NcclFunctions) => number)[]): string | null {
    if (!this.state.enter()) return 'the communicator has been aborted';
    try {
      const result = this.#finished(worst(this.#results(calls)));
      return result === ncclSuccess ? null : this.#describe(result);
    } finally {
      this.state.leave();
    }
  }

  #results(calls: readonly ((functions: NcclFunctions) => number)[]): number[] {
    const { functions } = ncclLibrary();
    if (calls.length < 2) return calls.map((call) => call(functions));
    // A group that has begun must end, whatever becomes of its calls.
    return [functions.ncclGroupStart(), ...calls.map((call) => call(functions)), functions.ncclGroupEnd()];
  }

  /** Waits while the library is still at it: the first call connects the ranks. */
  #finished(result: number): number {
    const deadline = performance.now() + this.#timeoutMs;
    while (result === ncclInProgress && performance.now() < deadline) {
      Atomics.wait(idle, 0, 0, pollMs);
      result = this.asyncError();
    }
    return result;
  }

  /** What has gone wrong since, an ncclResult_t. */
  asyncError(): number {
    const result = ncclLibrary().functions.ncclCommGetAsyncError(this.handle, this.#result.address);
    return result === ncclSuccess ? this.#result.readInt32(0) : result;
  }

  /** Ends what is under way and frees it. Once is enough; more does nothing. */
  abort(): void {
    if (!this.state.enter()) return;
    this.state.noteFailure();
    ncclLibrary().functions.ncclCommAbort(this.handle);
    this.state.leaveAborted();
  }

  #describe(result: number): string {
    if (result === ncclInProgress) return `timed out after ${this.#timeoutMs} ms`;
    return ncclLibrary().describe(result, this.handle);
  }
}

/** The first error, or else whether one is still in progress. */
function worst(results: readonly number[]): number {
  const isError = (result: number) => result !== ncclSuccess && result !== ncclInProgress;
  return results.find(isError) ?? Math.max(ncclSuccess, ...results);
}

const idle = new Int32Array(new SharedArrayBuffer(4));

function configOf(): HostMemory {
  const memory = new HostMemory(config.bytes);
  memory.writeInt64(0, config.bytes);
  memory.words[2] = config.magic;
  memory.words[3] = config.version;
  memory.words[4] = blocking;
  return memory;
}
