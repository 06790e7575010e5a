import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import type { JsonObject } from '../json.ts';
import { cellProgram } from '../paths.ts';
import type { CellError } from '../records/record.ts';
import { classifyEnding, type CellOutcome } from './cell-outcome.ts';
import { cellEvent, EVENT_DESCRIPTOR, type CellEvent, type CellJob } from './cell-protocol.ts';
import { countMemoryKills } from './kernel-memory-kills.ts';
import { killTree } from './process-tree.ts';

export interface CellProcessOptions {
  /** After this many milliseconds the process and all it started are killed. Default: never. */
  readonly timeoutMs?: number | null;
  /** Aborting kills the process likewise; the outcome is then `interrupted`. */
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: Extract<CellEvent, { type: 'progress' }>) => void;
}

/** A process that has sent its result and does not end is killed after this time. */
const EXIT_GRACE_MS = 10_000;
const STDERR_TAIL_CHARACTERS = 4000;

/** Runs one job in a process of its own. Never rejects: whatever goes wrong is an outcome. */
export function runCellProcess(job: CellJob, options: CellProcessOptions = {}): Promise<CellOutcome> {
  if (options.signal?.aborted) return Promise.resolve({ status: 'interrupted' });
  const memoryKillsBefore = countMemoryKills();
  const child = spawn(process.execPath, [...cellProgram.nodeFlags, cellProgram.path], {
    // A process group of its own, so that it can be killed with everything it started.
    detached: true,
    stdio: ['pipe', 'ignore', 'pipe', 'pipe'],
  });

  return new Promise((resolve) => {
    let killedBy: 'timeout' | 'interrupt' | null = null;
    let result: JsonObject | null = null;
    let error: CellError | null = null;
    const kill = (reason: 'timeout' | 'interrupt') => {
      killedBy ??= reason;
      if (child.pid !== undefined) killTree(child.pid);
    };
    const interrupt = () => kill('interrupt');
    options.signal?.addEventListener('abort', interrupt, { once: true });
    const timers: NodeJS.Timeout[] = [];
    if (options.timeoutMs) timers.push(setTimeout(() => kill('timeout'), options.timeoutMs));

    const stderr = tailOf(child);
    readEvents(child, (event) => {
      if (event.type === 'progress') options.onProgress?.(event);
      if (event.type === 'error') error = event.error;
      if (event.type === 'result') {
        result = event.result;
        timers.push(setTimeout(() => child.pid !== undefined && killTree(child.pid), EXIT_GRACE_MS));
      }
    });
    child.on('error', (cause) => {
      error = { name: cause.name, message: `The cell's process could not be started: ${cause.message}` };
    });
    // What the cell started must not outlive it, nor hold its pipes open.
    child.on('exit', () => child.pid !== undefined && killTree(child.pid));
    child.on('close', (exitCode, exitSignal) => {
      timers.forEach(clearTimeout);
      options.signal?.removeEventListener('abort', interrupt);
      const memoryKills = countMemoryKills();
      resolve(
        classifyEnding({
          result,
          error,
          exitCode,
          exitSignal,
          killedBy,
          timeoutMs: options.timeoutMs ?? null,
          stderrTail: stderr(),
          kernelRanOutOfMemory: memoryKills !== null && memoryKills > (memoryKillsBefore ?? 0),
        }),
      );
    });
    sendJob(child, job);
  });
}

/** Stdin stays open: its end tells the cell that the runner is gone. */
function sendJob(child: ChildProcess, job: CellJob): void {
  const stdin = child.stdin as Writable;
  // A process that died at once leaves a broken pipe; its exit tells the story.
  stdin.on('error', () => {});
  stdin.write(`${JSON.stringify(job)}\n`);
}

function readEvents(child: ChildProcess, listener: (event: CellEvent) => void): void {
  const events = child.stdio[EVENT_DESCRIPTOR] as Readable;
  createInterface({ input: events }).on('line', (line) => {
    const event = parseEvent(line);
    if (event !== null) listener(event);
  });
}

/** Null for a line torn by a kill. */
function parseEvent(line: string): CellEvent | null {
  try {
    return cellEvent.parse(JSON.parse(line));
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function tailOf(child: ChildProcess): () => string {
  let tail = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    tail = (tail + text).slice(-STDERR_TAIL_CHARACTERS);
  });
  return () => tail;
}
