import { killTree, spawnWithLifeline } from '@roofline/collectives/spawn-with-lifeline';
import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { ifPossible } from '../attempt.ts';
import { firstIssue } from '../check-argument.ts';
import { cellProgram } from '../paths.ts';
import { classifyEnding, type CellEnding, type CellOutcome } from './cell-outcome.ts';
import { cellEvent, EVENT_DESCRIPTOR, type CellEvent, type CellJob } from './cell-protocol.ts';
import { afterMs } from './timer.ts';
import { readFileSync } from 'node:fs';

export interface CellProcessOptions {
  /** After this many milliseconds the process and all it started are killed. Default: never. */
  readonly timeoutMs?: number | null;
  /** Aborting kills the process likewise; the outcome is then `interrupted`. */
  readonly signal?: AbortSignal;
  /** Variables besides those of this process. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly onProgress?: (progress: Extract<CellEvent, { type: 'progress' }>) => void;
}

/** A process that has sent its result and does not end is killed after this time. */
const EXIT_GRACE_MS = 10_000;
const STDERR_TAIL_CHARACTERS = 4000;

/** Runs one job in a process of its own. Never rejects: whatever goes wrong is an outcome. */
export function runCellProcess(job: CellJob, options: CellProcessOptions = {}): Promise<CellOutcome> {
  if (options.signal?.aborted) return Promise.resolve({ status: 'interrupted' });
  const memoryKillsBefore = countMemoryKills();
  const child = spawnCell(options.environment);
  const supervision = supervise(child, options);
  return new Promise((resolve) => {
    child.on('close', (exitCode, exitSignal) => {
      const seen = supervision.end();
      const memoryKills = countMemoryKills();
      const kernelRanOutOfMemory = memoryKills !== null && memoryKills > (memoryKillsBefore ?? 0);
      const timeoutMs = options.timeoutMs ?? null;
      resolve(classifyEnding({ ...seen, exitCode, exitSignal, timeoutMs, kernelRanOutOfMemory }));
    });
    sendJob(child, job);
  });
}

function spawnCell(environment: CellProcessOptions['environment']): ChildProcess {
  return spawnWithLifeline([...cellProgram.nodeFlags, cellProgram.path], {
    stdio: ['pipe', 'ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...environment },
  });
}

type Seen = Pick<CellEnding, 'result' | 'error' | 'killedBy' | 'stderrTail'>;

/** Listens to a cell, and kills it in time; `end` stops that and returns what was seen. */
function supervise(child: ChildProcess, options: CellProcessOptions): { end(): Seen } {
  const seen: { -readonly [K in keyof Seen]: Seen[K] } = {
    result: null,
    error: null,
    killedBy: null,
    stderrTail: '',
  };
  const callOffs: (() => void)[] = [];
  const killAll = () => child.pid !== undefined && killTree(child.pid);
  const kill = (reason: 'timeout' | 'interrupt') => {
    seen.killedBy ??= reason;
    killAll();
  };
  const interrupt = () => kill('interrupt');
  options.signal?.addEventListener('abort', interrupt, { once: true });
  if (options.timeoutMs) callOffs.push(afterMs(options.timeoutMs, () => kill('timeout')));
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    seen.stderrTail = (seen.stderrTail + text).slice(-STDERR_TAIL_CHARACTERS);
  });
  readEvents(child, (event) => {
    if (event.type === 'progress') options.onProgress?.(event);
    if (event.type === 'error') seen.error = event.error;
    if (event.type !== 'result') return;
    seen.result = event.result;
    callOffs.push(afterMs(EXIT_GRACE_MS, killAll));
  });
  child.on('error', ({ name, message }) => {
    seen.error = { name, message: `The cell's process could not be started: ${message}` };
  });
  // What the cell started must neither outlive it nor hold its pipes open.
  child.on('exit', killAll);
  return {
    end() {
      for (const callOff of callOffs) callOff();
      options.signal?.removeEventListener('abort', interrupt);
      return seen;
    },
  };
}

/** Stdin stays open: its end shows the cell that the runner is gone. */
function sendJob(child: ChildProcess, job: CellJob): void {
  const stdin = child.stdin as Writable;
  // A process that died at once leaves a broken pipe; its exit code says why.
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

/**
 * Null for a line torn by a kill. Anything else that a benchmark gives instead of a result or counts is an error of its
 * cell.
 */
function parseEvent(line: string): CellEvent | null {
  const value: unknown = ifPossible(() => JSON.parse(line));
  if (value === undefined) return null;
  const { data, error } = cellEvent.safeParse(value);
  if (data) return data;
  const message =
    `What the cell gave cannot be kept (${firstIssue('it', error)}): measure returns an object of what JSON holds, and ` +
    'progress takes two finite numbers and a text.';
  return { type: 'error', error: { name: 'ArgumentError', message } };
}

/** How many processes the Linux kernel has killed for want of memory; null where that is unknown. */
function countMemoryKills(): number | null {
  const statistics = ifPossible(() => readFileSync('/proc/vmstat', 'utf8')) ?? '';
  const count = /^oom_kill (\d+)$/m.exec(statistics)?.[1];
  return count === undefined ? null : Number(count);
}
