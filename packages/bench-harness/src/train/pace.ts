/** Steps over which the pace is averaged. */
const window = 20;

/** How fast steps follow one another; what comes between them, as a save, does not count. */
export class Pace {
  readonly #durationsMs: number[] = [];
  #sinceMs: number;

  constructor(nowMs: number) {
    this.#sinceMs = nowMs;
  }

  /** A step has been made. Returns its time. */
  stepped(nowMs: number): number {
    const durationMs = nowMs - this.#sinceMs;
    this.#sinceMs = nowMs;
    this.#durationsMs.push(durationMs);
    if (this.#durationsMs.length > window) this.#durationsMs.shift();
    return durationMs;
  }

  /** The next step begins now. */
  resumed(nowMs: number): void {
    this.#sinceMs = nowMs;
  }

  /** The mean time of the last steps. */
  get stepMs(): number {
    return this.#durationsMs.reduce((sum, each) => sum + each, 0) / this.#durationsMs.length;
  }
}
