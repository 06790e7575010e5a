import type { Loss } from '../../group/backend.ts';
import type { Store } from '../../store/store.ts';
import type { StoreClient } from '../../store/store-client.ts';
import type { FailureMessage } from './messages.ts';

/** What the store says in place of a rank whose connection has ended. */
const goneText = 'gone';
/** Ranks that do not answer for this long are gone too, for example beyond a network that is cut. */
export const answerMs = 5000;
/** Timers take little more. */
const longMs = 2 ** 31 - 60_000;

/**
 * How the watchdogs of a communicator agree on its end, through the store: the first to see something raises the alarm,
 * and all hear it. Each then says how many calls its rank has begun: who does not say so is gone, and who has begun
 * fewer than others is late.
 */
export class Alarms {
  readonly #store: Store;
  readonly #prefix: string;
  readonly #rank: number;
  readonly #size: number;

  constructor(store: Store, prefix: string, rank: number, size: number) {
    this.#store = store;
    this.#prefix = prefix;
    this.#rank = rank;
    this.#size = size;
  }

  /** Has the store answer in this rank's place once its process, or its watchdog, has ended. */
  async answerOnceGone(client: StoreClient): Promise<void> {
    await client.setOnceGone(this.#key(`answer/${this.#rank}`), goneText);
  }

  async raise(message: string): Promise<void> {
    await this.#store.compareAndSet(this.#key('alarm'), null, message);
  }

  /** Resolves when one is raised, with its outcome. `startedCalls` says how far this rank is. */
  async hear(startedCalls: () => number): Promise<FailureMessage> {
    const message = await this.#store.get(this.#key('alarm'), { timeoutMs: longMs });
    return { message: new TextDecoder().decode(message), losses: await this.#lossesBy(startedCalls()) };
  }

  async #lossesBy(ownCalls: number): Promise<FailureMessage['losses']> {
    const keyOf = (rank: number) => this.#key(`answer/${rank}`);
    await this.#store.set(keyOf(this.#rank), String(ownCalls));
    const calls = await Promise.all(
      Array.from({ length: this.#size }, (_, rank) =>
        this.#store.get(keyOf(rank), { timeoutMs: answerMs }).then(
          (bytes) => callsOf(new TextDecoder().decode(bytes)),
          () => null,
        ),
      ),
    );
    const most = Math.max(...calls.map((count) => count ?? 0));
    return calls.flatMap((count, rank): [number, Loss][] => {
      if (count === null) return [[rank, 'gone']];
      return count < most ? [[rank, 'late']] : [];
    });
  }

  #key(name: string): string {
    return `${this.#prefix}/${name}`;
  }
}

function callsOf(answer: string): number | null {
  return answer === goneText ? null : Number(answer);
}
