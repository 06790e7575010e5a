import { killTree, spawnWithLifeline } from '@roofline/collectives/spawn-with-lifeline';
import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { ifPossible } from '../attempt.ts';
import { firstIssue } from '../check-argument.ts';
import { cellProgram } from '../paths.ts';
import { classifyEnding, type CellEnding, type CellOutcome } from './cell-outcome.ts';
import { cellEvent, EVENT_DESCRIPTOR, type CellEvent, type CellJob } from './cell-protocol.ts';
import { afterMs } from './timer.ts';

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
  return new CellProcess(options.environment).run(job, options);
}

type Seen = Pick<CellEnding, 'result' | 'error' | 'killedBy'>;
type Exit = Pick<CellEnding, 'exitCode' | 'exitSignal'>;

/** A process that runs jobs, one after the other as long as each says that it goes on. */
export class CellProcess {
  readonly #child: ChildProcess;
  readonly #closed: Promise<Exit>;
  /** What to do with events of the job under way. */
  #listener: (event: CellEvent) => void = () => {};
  #stderrTail = '';
  #isReady = true;
  #jobsDone = 0;

  /** `environment` holds variables besides those of this process. */
  constructor(environment: CellProcessOptions['environment'] = {}) {
    this.#child = spawnWithLifeline([...cellProgram.nodeFlags, cellProgram.path], {
      stdio: ['pipe', 'ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...environment },
    });
    this.#closed = new Promise((resolve) => {
      this.#child.on('close', (exitCode, exitSignal) => {
        this.#isReady = false;
        resolve({ exitCode, exitSignal });
      });
    });
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderrTail = (this.#stderrTail + text).slice(-STDERR_TAIL_CHARACTERS);
    });
    readEvents(this.#child, (event) => this.#listener(event));
    this.#child.on('error', ({ name, message }) => {
      const error = { name, message: `The cell's process could not be started: ${message}` };
      this.#listener({ type: 'error', error });
    });
    // What the cell started must neither outlive it nor hold its pipes open.
    this.#child.on('exit', () => this.#kill());
    // A process that died at once leaves a broken pipe; its exit code says why.
    this.#child.stdin?.on('error', () => {});
  }

  /** Whether it takes a job: none is under way, and the last has left the device as it was. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** The jobs that it has run. */
  get jobsDone(): number {
    return this.#jobsDone;
  }

  /** Runs a job while it is ready. Never rejects: whatever goes wrong is an outcome. */
  async run(job: CellJob, options: Omit<CellProcessOptions, 'environment'> = {}): Promise<CellOutcome> {
    this.#isReady = false;
    const memoryKillsBefore = countMemoryKills();
    const { seen, goesOn, end } = this.#supervise(options);
    sendJob(this.#child, job);
    const exit = await Promise.race([this.#closed, goesOn]);
    end();
    this.#jobsDone++;
    this.#isReady = exit === null;
    const memoryKills = countMemoryKills();
    return classifyEnding({
      ...seen,
      ...(exit ?? { exitCode: null, exitSignal: null }),
      stderrTail: this.#stderrTail,
      timeoutMs: options.timeoutMs ?? null,
      kernelRanOutOfMemory: memoryKills !== null && memoryKills > (memoryKillsBefore ?? 0),
    });
  }

  /** Ends it, and waits until it has. */
  async end(): Promise<void> {
    this.#isReady = false;
    const callOff = afterMs(EXIT_GRACE_MS, () => this.#kill());
    this.#child.stdin?.end();
    await this.#closed;
    callOff();
  }

  #kill(): void {
    if (this.#child.pid !== undefined) killTree(this.#child.pid);
  }

  /** Listens to a job, and kills it in time; `goesOn` comes when the process waits for another. */
  #supervise({ timeoutMs, signal, onProgress }: CellProcessOptions) {
    const seen: { -readonly [K in keyof Seen]: Seen[K] } = { result: null, error: null, killedBy: null };
    const callOffs: (() => void)[] = [];
    const kill = (reason: 'timeout' | 'interrupt') => {
      seen.killedBy ??= reason;
      this.#kill();
    };
    const interrupt = () => kill('interrupt');
    // It may have come while the cell was made ready.
    if (signal?.aborted) interrupt();
    signal?.addEventListener('abort', interrupt, { once: true });
    if (timeoutMs) callOffs.push(afterMs(timeoutMs, () => kill('timeout')));
    const goesOn = new Promise<null>((resolve) => {
      this.#listener = (event) => {
        if (event.type === 'progress') onProgress?.(event);
        if (event.type === 'error') seen.error = event.error;
        if (event.type !== 'result') return;
        seen.result = event.result;
        if (event.goesOn) resolve(null);
        else callOffs.push(afterMs(EXIT_GRACE_MS, () => this.#kill()));
      };
    });
    const end = () => {
      for (const callOff of callOffs) callOff();
      signal?.removeEventListener('abort', interrupt);
    };
    return { seen, goesOn, end };
  }
}

/** Stdin stays open: its end shows the cell that the runner is gone. */
function sendJob(child: ChildProcess, job: CellJob): void {
  const stdin = child.stdin as Writable;
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
