import { mayBeUncaught, uncaughtError } from './uncaught-error.ts';

const keptLines = 40;
/** How long a rank may take to end once it began to write what may be its last error. */
const lastErrorMs = 2000;

/**
 * What a rank writes to stderr, handed on line by line. The error that it ends with is held back: a launcher reports it
 * once for all ranks that end with it.
 */
export class RankOutput {
  readonly #write: (line: string) => void;
  readonly #lastLines: string[] = [];
  readonly #held: string[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(write: (line: string) => void) {
    this.#write = write;
  }

  /** The last lines, those that were held back too. */
  get lastLines(): readonly string[] {
    return this.#lastLines;
  }

  take(line: string): void {
    this.#lastLines.push(line);
    if (this.#lastLines.length > keptLines) this.#lastLines.shift();
    this.#held.push(line);
    while (this.#held.length > 0 && !mayBeUncaught(this.#held)) this.#write(this.#held.shift()!);
    if (this.#held.length === 0) this.#stopTimer();
    else this.#timer ??= setTimeout(() => this.#release(), lastErrorMs);
  }

  /** The error that the rank ended with, if nothing caught it; null otherwise, and all lines are handed on. */
  end(): readonly string[] | null {
    const error = uncaughtError(this.#held);
    if (error !== null) this.#held.length = 0;
    this.#release();
    return error;
  }

  #release(): void {
    this.#stopTimer();
    for (const line of this.#held.splice(0)) this.#write(line);
  }

  #stopTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
