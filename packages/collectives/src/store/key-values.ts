import { startTimer } from '../bounded-timer.ts';

/** Called when the keys waited for have all come, or with those that have not come in time. */
export type Answer = (missing: readonly string[]) => void;

interface Waiter {
  readonly missing: Set<string>;
  readonly timer: NodeJS.Timeout;
  readonly answer: Answer;
}

/** A store's keys and values, and who waits for them. */
export class KeyValues {
  readonly #values = new Map<string, Buffer>();
  readonly #waiters = new Map<string, Set<Waiter>>();
  readonly #largestBytes: number;
  #heldBytes = 0;

  /** `largestBytes` is what all keys and values together may have. */
  constructor(largestBytes: number) {
    this.#largestBytes = largestBytes;
  }

  get(key: string): Buffer | undefined {
    return this.#values.get(key);
  }

  /** Throws a RangeError if there is no room. */
  set(key: string, value: Uint8Array): void {
    const held = this.#heldBytes - this.#bytesOf(key) + Buffer.byteLength(key) + value.length;
    if (held > this.#largestBytes) throw new RangeError(`it holds ${this.#largestBytes} bytes at most`);
    this.#heldBytes = held;
    // A copy: the bytes of a message lie in its whole chunk.
    this.#values.set(key, Buffer.from(value));
    const waiters = this.#waiters.get(key);
    if (!waiters) return;
    this.#waiters.delete(key);
    for (const waiter of waiters) {
      waiter.missing.delete(key);
      if (waiter.missing.size === 0) this.#finish(waiter);
    }
  }

  deletePrefix(prefix: string): number {
    const doomed = [...this.#values.keys()].filter((key) => key.startsWith(prefix));
    for (const key of doomed) {
      this.#heldBytes -= this.#bytesOf(key);
      this.#values.delete(key);
    }
    return doomed.length;
  }

  /**
   * Calls `answer` once, when all keys have values or the time is over. Returns a function that gives up, or null where all
   * have values as it is called: there is no answer then.
   */
  wait(keys: readonly string[], timeoutMs: number, answer: Answer): (() => void) | null {
    const missing = new Set(keys.filter((key) => !this.#values.has(key)));
    if (missing.size === 0) return null;
    const timer = startTimer(() => this.#finish(waiter), timeoutMs);
    timer.unref();
    const waiter: Waiter = { missing, timer, answer };
    for (const key of missing) {
      const waiters = this.#waiters.get(key) ?? new Set();
      this.#waiters.set(key, waiters.add(waiter));
    }
    return () => this.#forget(waiter);
  }

  #bytesOf(key: string): number {
    const value = this.#values.get(key);
    return value ? Buffer.byteLength(key) + value.length : 0;
  }

  #finish(waiter: Waiter): void {
    this.#forget(waiter);
    waiter.answer([...waiter.missing]);
  }

  #forget(waiter: Waiter): void {
    clearTimeout(waiter.timer);
    for (const key of waiter.missing) {
      const waiters = this.#waiters.get(key);
      waiters?.delete(waiter);
      if (waiters?.size === 0) this.#waiters.delete(key);
    }
  }
}
