import { StoreError } from '../../errors.ts';
import type { Store } from '../../store/store.ts';
import type { CheckMessage, FailureMessage } from './messages.ts';

/** Keys of so many calls are deleted together, once the next ones are full as well. */
const blockCalls = 1024;

/** What ranks called that did not fit, as an alarm says it. */
export type Mismatch = FailureMessage;

/**
 * Compares calls of ranks through the store, one after the other: of a collective rank 0 says what it called and the
 * others compare; of a send and receive the sender says it.
 */
export class CallCheck {
  readonly #store: Store;
  readonly #prefix: string;
  readonly #rank: number;
  readonly #counts = new Map<string, number>();

  constructor(store: Store, prefix: string, rank: number) {
    this.#store = store;
    this.#prefix = prefix;
    this.#rank = rank;
  }

  /** Null where it fits what the rank that speaks has called, or where that is not known in time. */
  async check({ description, pair }: CheckMessage, timeoutMs: number): Promise<Mismatch | null> {
    const speaker = pair ? pair.from : 0;
    const channel = `${this.#prefix}/calls/${pair ? `${pair.from}-${pair.to}` : 'all'}`;
    const number = this.#counts.get(channel) ?? 0;
    this.#counts.set(channel, number + 1);
    const block = Math.floor(number / blockCalls);
    const key = `${channel}/${block}/${number}`;
    if (this.#rank === speaker) {
      await this.#store.set(key, description);
      if (number % blockCalls === 0 && block > 1) await this.#store.deletePrefix(`${channel}/${block - 2}/`);
      return null;
    }
    const other = await this.#said(key, timeoutMs);
    if (other === null || other === description) return null;
    return {
      message: `the ranks do not call the same: one asks for ${description}, the other for ${other}`,
      losses: [
        [speaker, 'differs'],
        [this.#rank, 'differs'],
      ],
    };
  }

  async #said(key: string, timeoutMs: number): Promise<string | null> {
    try {
      return new TextDecoder().decode(await this.#store.get(key, { timeoutMs }));
    } catch (error) {
      // A rank that does not come is the watchdog's to notice.
      if (error instanceof StoreError) return null;
      throw error;
    }
  }
}
