import { OpenRange, currentOpenRange, inRange } from './range.ts';

interface ReopenedRangesOptions {
  /** The name of a range that is left out where it is the outermost. */
  readonly without?: string;
  /** The range that was around all of them before: it and those around it are left out. */
  readonly inside?: OpenRange | null;
}

/**
 * Ranges that are opened again below others: those of the forward pass below that of the backward pass, and a compiled
 * function's below those around its replays. Calls that follow each other share the ranges that they shared before; a range
 * that another came between is opened once more.
 */
export class ReopenedRanges {
  readonly #without: string | null;
  readonly #inside: OpenRange | null;
  #outer: OpenRange | null = null;
  /** The innermost that was opened again last. */
  #innermost: OpenRange | null = null;

  constructor({ without, inside }: ReopenedRangesOptions = {}) {
    this.#without = without ?? null;
    this.#inside = inside ?? null;
  }

  /** Runs `fn` in a call's ranges, below those that are open now. */
  run<T>(range: OpenRange | null, fn: () => T): T {
    return inRange(this.below(currentOpenRange(), range), fn);
  }

  /** What a call's innermost range is below `outer`: that itself where none is left. Those that are open there are left out. */
  below(outer: OpenRange | null, range: OpenRange | null): OpenRange | null {
    if (outer !== this.#outer) this.#innermost = this.#outer = outer;
    return (this.#innermost = this.#reopened(range));
  }

  #reopened(range: OpenRange | null): OpenRange | null {
    if (range === null || this.#isAround(range)) return this.#outer;
    if (range.name === this.#without && this.#isAround(range.outer)) return this.#outer;
    return this.#stillOpen(range) ?? new OpenRange(this.#reopened(range.outer), range.name, range);
  }

  #isAround(range: OpenRange | null): boolean {
    if (range === null || range === this.#inside) return true;
    for (let around = this.#outer; around !== null; around = around.outer) if (around === range) return true;
    return false;
  }

  #stillOpen(range: OpenRange): OpenRange | null {
    for (let opened = this.#innermost; opened !== this.#outer; opened = opened!.outer)
      if (opened!.origin === range) return opened;
    return null;
  }
}
