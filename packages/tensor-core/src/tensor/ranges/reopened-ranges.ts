import { OpenRange, currentOpenRange, inRange } from './range.ts';

interface ReopenedRangesOptions {
  /** The name of a range that is left out if it is the outermost. */
  readonly without?: string;
  /** The range that was around all of them originally: it and those around it are left out. */
  readonly inside?: OpenRange | null;
}

/**
 * Opens ranges again inside others: those of the forward pass inside that of the backward pass, and a compiled function's
 * inside those around its replays. Consecutive calls share the ranges that they shared originally; a range that was
 * interrupted by another is opened once more.
 */
export class ReopenedRanges {
  readonly #without: string | null;
  readonly #inside: OpenRange | null;
  #outer: OpenRange | null = null;
  /** The innermost range that was opened again last. */
  #innermost: OpenRange | null = null;

  constructor({ without, inside }: ReopenedRangesOptions = {}) {
    this.#without = without ?? null;
    this.#inside = inside ?? null;
  }

  /** Runs `fn` in a call's ranges, inside those that are open now. */
  run<T>(range: OpenRange | null, fn: () => T): T {
    return inRange(this.below(currentOpenRange(), range), fn);
  }

  /**
   * A call's innermost range inside `outer`; `outer` itself if none is left. Ranges that are already open there are left out.
   */
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
