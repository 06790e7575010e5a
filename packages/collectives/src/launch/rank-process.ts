import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { RankOutput } from './rank-output.ts';
import { spawnWithLifeline } from './spawn-with-lifeline.ts';

/** How a rank ended, if not well. */
export interface RankFailure {
  readonly rank: number;
  /** Null where a signal ended it. */
  readonly exitCode: number | null;
  /** Such as SIGKILL. */
  readonly signal: string | null;
  /** The last lines that it wrote to stderr. */
  readonly lastLines: readonly string[];
  /**
   * The error that ended it, if nothing caught it: message, frames of its stack outside of Node.js, members. Null where
   * it ended otherwise.
   */
  readonly error: readonly string[] | null;
}

export interface RankCommand {
  readonly rank: number;
  readonly script: string;
  readonly args: readonly string[];
  readonly variables: Readonly<Record<string, string | undefined>>;
}

/** How long the output of a rank that has ended may still come. */
const lastOutputMs = 1000;

/** What a launcher sends. */
export const signals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGKILL'] as const;

/** A started rank. */
export class RankProcess {
  readonly rank: number;
  /** Resolves when it has ended and all its output has been passed on; null if it ended well. */
  readonly ended: Promise<RankFailure | null>;
  readonly #child: ChildProcess;
  readonly #stderr: RankOutput;

  constructor(
    { rank, script, args, variables }: RankCommand,
    write: (stream: 'stdout' | 'stderr', line: string) => void,
  ) {
    this.rank = rank;
    // In a group of its own: a Ctrl-C of the terminal reaches it by the launcher alone, and once.
    this.#child = spawnWithLifeline([...process.execArgv, script, ...args], {
      env: { ...process.env, ...variables },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const prefix = `[rank ${rank}] `;
    createInterface({ input: this.#child.stdout! }).on('line', (line) => write('stdout', prefix + line));
    this.#stderr = new RankOutput((line) => write('stderr', prefix + line));
    createInterface({ input: this.#child.stderr! }).on('line', (line) => this.#stderr.take(line));
    this.ended = this.#watch();
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Sends a signal to it and to what it has started, as a terminal would. */
  signal(signal: (typeof signals)[number]): void {
    const { pid, exitCode, signalCode } = this.#child;
    if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid, signal);
  }

  async #watch(): Promise<RankFailure | null> {
    const [exitCode, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve) => {
      this.#child.once('exit', (code, by) => {
        // What it started may hold its output open for ever.
        const timer = setTimeout(() => {
          this.#child.stdout?.destroy();
          this.#child.stderr?.destroy();
        }, lastOutputMs);
        this.#child.once('close', () => {
          clearTimeout(timer);
          resolve([code, by]);
        });
      });
      this.#child.once('error', (error) => {
        this.#stderr.take(error.message);
        resolve([127, null]);
      });
    });
    const error = this.#stderr.end();
    if (exitCode === 0) return null;
    return { rank: this.rank, exitCode, signal, lastLines: this.#stderr.lastLines, error };
  }
}
