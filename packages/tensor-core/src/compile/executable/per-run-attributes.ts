import type { Call } from '../graph/graph.ts';

/** The attributes of a call in a run whose live attributes are given. */
export function attributesOf({ attributes, live }: Call, perRunAttributes: readonly unknown[]): unknown {
  return live === null ? attributes : perRunAttributes[live];
}

/** The live attributes of one run. They are asked for in the trace's order, none before it is needed: a run may fail. */
export class PerRunAttributes {
  readonly #next: readonly (() => unknown)[];
  readonly #asked: unknown[] = [];

  /** `next` gives what every run asks for again, in the trace's order, also for calls that were dropped. */
  constructor(next: readonly (() => unknown)[]) {
    this.#next = next;
  }

  /** The attributes of a call in this run. */
  of({ attributes, live }: Call): unknown {
    return live === null ? attributes : this.#askUpTo(live)[live];
  }

  /** In the trace's order, also those of calls that were dropped. */
  all(): readonly unknown[] {
    return this.#askUpTo(this.#next.length - 1);
  }

  #askUpTo(index: number): readonly unknown[] {
    while (this.#asked.length <= index) this.#asked.push(this.#next[this.#asked.length]!());
    return this.#asked;
  }
}
