import type { JsonObject } from '../records/json.ts';
import type { CellError } from '../records/record.ts';

/** How a cell's process ended. `interrupted` is never recorded: the cell counts as not measured. */
export type CellOutcome =
  | { readonly status: 'ok'; readonly result: JsonObject }
  | { readonly status: 'failed' | 'timeout' | 'out-of-memory'; readonly error: CellError }
  | { readonly status: 'interrupted' };

/** What was seen of a process until its end. */
export interface CellEnding {
  readonly result: JsonObject | null;
  readonly error: CellError | null;
  readonly exitCode: number | null;
  readonly exitSignal: NodeJS.Signals | null;
  /** Why the runner killed it, if it did. */
  readonly killedBy: 'timeout' | 'interrupt' | null;
  readonly timeoutMs: number | null;
  /** The last of what it printed to stderr. */
  readonly stderrTail: string;
  /** Whether the kernel killed some process for want of memory meanwhile. */
  readonly kernelRanOutOfMemory: boolean;
}

/** Heap exhaustion aborts V8, and a failed allocation in native code says so before it aborts. */
const OUT_OF_MEMORY_TEXT = /JavaScript heap out of memory|Array buffer allocation failed|std::bad_alloc/;

/** Sorts an ending into the kinds a reader of the table cares for. */
export function classifyEnding(ending: CellEnding): CellOutcome {
  if (ending.result !== null) return { status: 'ok', result: ending.result };
  if (ending.killedBy === 'interrupt') return { status: 'interrupted' };
  if (ending.killedBy === 'timeout') {
    const message = `The cell took longer than ${(ending.timeoutMs ?? 0) / 1000} s and was killed (--timeout).`;
    return { status: 'timeout', error: { name: 'TimeoutError', message } };
  }
  if (ending.error !== null) {
    return { status: isOutOfMemory(ending.error) ? 'out-of-memory' : 'failed', error: ending.error };
  }
  return classifyCrash(ending);
}

function isOutOfMemory(error: CellError): boolean {
  return error.code === 'OUT_OF_MEMORY' || OUT_OF_MEMORY_TEXT.test(error.message);
}

function classifyCrash(ending: CellEnding): CellOutcome {
  if (ending.exitSignal === 'SIGKILL' && ending.kernelRanOutOfMemory) {
    const message = "The kernel killed the cell's process because the machine's memory was used up.";
    return { status: 'out-of-memory', error: { name: 'OutOfMemoryError', message } };
  }
  const how =
    ending.exitSignal === null
      ? `exited with code ${ending.exitCode}`
      : `was ended by the signal ${ending.exitSignal}`;
  const said = ending.stderrTail.trim();
  const message = `The cell's process ${how} before it had a result.${said && ` It said:\n${said}`}`;
  return OUT_OF_MEMORY_TEXT.test(said)
    ? { status: 'out-of-memory', error: { name: 'OutOfMemoryError', message } }
    : { status: 'failed', error: { name: 'CellCrash', message } };
}
