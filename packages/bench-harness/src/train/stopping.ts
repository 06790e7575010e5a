import type { ProcessGroup } from '@roofline/collectives';

/** How often ranks ask each other. */
const askedEveryMs = 250;

/** Whether a training is to stop before its end, as all ranks learn it after the same step. */
export class Stopping {
  readonly #signal: AbortSignal;
  readonly #group: ProcessGroup | null;
  /** The steps made when ranks ask each other next. */
  #next = 1;

  constructor(signal: AbortSignal, group: ProcessGroup | null) {
    this.#signal = signal;
    this.#group = group;
  }

  /** Whether one of the ranks has been interrupted, asked after each step. A collective of some steps, by rank 0's pace. */
  async isAsked(made: number, stepMs: number): Promise<boolean> {
    if (this.#group === null) return this.#signal.aborted;
    if (made < this.#next) return false;
    const said = await this.#group.allGatherObject({ isInterrupted: this.#signal.aborted, stepMs });
    this.#next = made + Math.max(1, Math.floor(askedEveryMs / said[0]!.stepMs));
    return said.some(({ isInterrupted }) => isInterrupted);
  }
}
