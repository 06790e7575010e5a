import type { Store } from '../store/store.ts';

/** A rank's call of `subGroup` that is under way. */
export interface Ask {
  /** Of the rank that asks: each call has a higher one. */
  readonly serial: number;
  /** The world's ranks that the group is to have. */
  readonly ranks: readonly number[];
}

/** An ask with the world's rank that makes it. */
export interface RankAsk extends Ask {
  readonly rank: number;
}

/** What a rank announces to the others about its calls of `subGroup`. */
export interface Notice {
  /** Those under way, the oldest first. */
  readonly asks: readonly Ask[];
  /** By rank, the serial up to which this one is done with that one's asks. */
  readonly met: Readonly<Record<number, number>>;
  /** Asks that did not fit each other, of the last calls that failed so. */
  readonly disagreements: readonly (readonly RankAsk[])[];
  /** What this rank asked for last, under way or not. */
  readonly last: Ask | null;
}

const nothing: Notice = { asks: [], met: {}, disagreements: [], last: null };
const keptDisagreements = 16;

/** Where the ranks of a world see what each asks for. */
export class AskBoard {
  readonly store: Store;
  /** Begins all keys. */
  readonly prefix: string;
  readonly rank: number;
  #notice = nothing;
  #serial = 0;

  constructor(store: Store, prefix: string, rank: number) {
    this.store = store;
    this.prefix = prefix;
    this.rank = rank;
  }

  async open(ranks: readonly number[]): Promise<Ask> {
    const ask = { serial: ++this.#serial, ranks };
    await this.#publish({ ...this.#notice, asks: [...this.#notice.asks, ask], last: ask });
    return ask;
  }

  /** Ends an ask, and with it those of others that it `met`, or that it disagreed with. */
  async close(ask: Ask, met: readonly RankAsk[], disagreement: readonly RankAsk[] | null): Promise<void> {
    const { asks, disagreements } = this.#notice;
    const known: Record<number, number> = { ...this.#notice.met };
    for (const { rank, serial } of met)
      if (rank !== this.rank) known[rank] = Math.max(known[rank] ?? 0, serial);
    await this.#publish({
      ...this.#notice,
      asks: asks.filter((other) => other !== ask),
      met: known,
      disagreements: [...disagreements, ...(disagreement ? [disagreement] : [])].slice(-keptDisagreements),
    });
  }

  /** What these ranks have announced, in their order. */
  async read(ranks: readonly number[]): Promise<Map<number, Notice>> {
    const notices = await Promise.all(
      ranks.map((rank) => (rank === this.rank ? this.#notice : this.#noticeOf(rank))),
    );
    return new Map(ranks.map((rank, i) => [rank, notices[i]!]));
  }

  async #noticeOf(rank: number): Promise<Notice> {
    // Does not wait for a rank that has announced nothing yet, as get() would.
    const held = await this.store.compareAndSet(this.#keyOf(rank), null, JSON.stringify(nothing));
    return held ? (JSON.parse(new TextDecoder().decode(held)) as Notice) : nothing;
  }

  async #publish(notice: Notice): Promise<void> {
    this.#notice = notice;
    await this.store.set(this.#keyOf(this.rank), JSON.stringify(notice));
  }

  #keyOf(rank: number): string {
    return `${this.prefix}/asks/${rank}`;
  }
}
