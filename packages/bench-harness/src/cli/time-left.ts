/** What takes less than this in all has no time left worth saying. */
const WORTH_SAYING_MS = 10_000;
/** The phase that says nothing of what comes after it. */
const WARM_UP = 'warm-up';

/**
 * How long work will go on: a cell by the pace of what counts in it, the cells after it by those before. All times are in
 * milliseconds of one clock.
 */
export class TimeLeft {
  #startedMs = 0;
  #cellsLeft = 0;
  readonly #cellsMs: number[] = [];
  #cellStartedMs = 0;
  #phase = '';
  #phaseStartedMs = 0;
  #cellLeftMs: number | null = null;
  #progressedAtMs = 0;

  /** So many cells, or pieces of work, will be started. */
  started(cells: number, nowMs: number): void {
    this.#startedMs = nowMs;
    this.#cellsLeft = cells;
    this.#cellsMs.length = 0;
  }

  cellStarted(nowMs: number): void {
    this.#cellsLeft = Math.max(0, this.#cellsLeft - 1);
    this.#cellStartedMs = nowMs;
    this.#phase = '';
    this.#progressedAtMs = nowMs;
    this.#cellLeftMs = null;
  }

  /** `done` of `total` of a phase; a phase of another name begins with the first of it. */
  cellProgressed(done: number, total: number, phase: string, nowMs: number): void {
    if (phase !== this.#phase) [this.#phase, this.#phaseStartedMs] = [phase, this.#progressedAtMs];
    this.#progressedAtMs = nowMs;
    const paceMs = (nowMs - this.#phaseStartedMs) / done;
    this.#cellLeftMs = done > 0 && phase !== WARM_UP ? paceMs * (total - done) : null;
  }

  cellFinished(nowMs: number): void {
    this.#cellsMs.push(nowMs - this.#cellStartedMs);
    this.#cellLeftMs = null;
  }

  /** `40 s left`; null where nothing is known, as of what takes longer than it should, and where all takes only seconds. */
  inWords(nowMs: number): string | null {
    const leftMs = this.#leftMs(nowMs);
    if (leftMs === null || leftMs <= 0 || nowMs - this.#startedMs + leftMs < WORTH_SAYING_MS) return null;
    return `${roughly(leftMs)} left`;
  }

  #leftMs(nowMs: number): number | null {
    const elapsedMs = nowMs - this.#cellStartedMs;
    const usualMs = this.#cellsMs.length > 0 ? mean(this.#cellsMs) : null;
    const sinceProgressMs = nowMs - this.#progressedAtMs;
    const cellMs =
      this.#cellLeftMs === null
        ? usualMs && Math.max(0, usualMs - elapsedMs)
        : Math.max(0, this.#cellLeftMs - sinceProgressMs);
    if (cellMs === null) return null;
    return cellMs + this.#cellsLeft * (usualMs ?? elapsedMs + cellMs);
  }
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** In whole seconds, minutes or tenths of hours. */
function roughly(durationMs: number): string {
  const seconds = Math.ceil(durationMs / 1000);
  if (seconds < 90) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 90 ? `${minutes} min` : `${(minutes / 60).toFixed(1)} h`;
}
