import { StoreError } from '../../errors.ts';
import type { Store } from '../../store/store.ts';
import type { CheckMessage, FailureMessage } from './messages.ts';

/** A rank deletes what it said of so many calls together, once the next ones are full as well. */
const blockCalls = 1024;

/** Compares calls of ranks through the store: each says what it calls, and reads what the others said. */
export class CallCheck {
  readonly #store: Store;
  readonly #prefix: string;
  readonly #rank: number;
  readonly #ranks: readonly number[];
  /** Calls so far, of all ranks together and of each pair and direction. */
  readonly #counts = new Map<string, number>();
  /** Contexts so far. */
  #contexts = 0;

  /** `ranks` are the world's, in the order of the group. */
  constructor(store: Store, prefix: string, rank: number, ranks: readonly number[]) {
    this.#store = store;
    this.#prefix = prefix;
    this.#rank = rank;
    this.#ranks = ranks;
  }

  /** Null where all have called the same, or where a rank does not say so in time. */
  async check({ description, pair }: CheckMessage, timeoutMs: number): Promise<FailureMessage | null> {
    const members = pair ? [pair.from, pair.to] : this.#ranks.map((_, member) => member);
    const channel = pair ? `${pair.from}-${pair.to}` : 'all';
    const number = this.#counts.get(channel) ?? 0;
    this.#counts.set(channel, number + 1);
    await this.#say(channel, number, description);
    const said = await this.#said(channel, number, members, timeoutMs);
    if (said === null || said.every((text) => text === description)) return null;
    const asked = members.map((member, i) => `rank ${this.#ranks[member]}: ${said[i]}`).join('; ');
    return {
      message: `the ranks do not call the same (${asked})`,
      losses: members.flatMap((member, i) => (said[i] === description ? [] : [[member, 'differs'] as const])),
    };
  }

  /**
   * What a call with a context says, against the rank that came to it first: one message a rank, where `check` takes one for
   * each pair of them. Null where both say the same; else who said what, for all others to hear.
   */
  async checkContext(description: string): Promise<string | null> {
    const number = this.#contexts++;
    const block = Math.floor(number / blockCalls);
    const said = `rank ${this.#ranks[this.#rank]}: ${description}`;
    const key = `${this.#prefix}/contexts/${block}/${number}`;
    const first = new TextDecoder().decode((await this.#store.compareAndSet(key, null, said))!);
    if (this.#rank === 0 && number % blockCalls === 0 && block > 1)
      await this.#store.deletePrefix(`${this.#prefix}/contexts/${block - 2}/`);
    if (first.slice(first.indexOf(':')) === said.slice(said.indexOf(':'))) return null;
    return `the ranks do not call the same (${first}; ${said})`;
  }

  async #say(channel: string, number: number, description: string): Promise<void> {
    const block = Math.floor(number / blockCalls);
    await this.#store.set(this.#key(channel, number, this.#rank), description);
    if (number % blockCalls === 0 && block > 1)
      await this.#store.deletePrefix(`${this.#prefix}/calls/${channel}/${this.#rank}/${block - 2}/`);
  }

  async #said(
    channel: string,
    number: number,
    members: readonly number[],
    timeoutMs: number,
  ): Promise<string[] | null> {
    const textOf = async (member: number) =>
      new TextDecoder().decode(await this.#store.get(this.#key(channel, number, member), { timeoutMs }));
    try {
      return await Promise.all(members.map(textOf));
    } catch (error) {
      // A rank that does not come is the watchdog's to notice.
      if (error instanceof StoreError) return null;
      throw error;
    }
  }

  #key(channel: string, number: number, rank: number): string {
    return `${this.#prefix}/calls/${channel}/${rank}/${Math.floor(number / blockCalls)}/${number}`;
  }
}
