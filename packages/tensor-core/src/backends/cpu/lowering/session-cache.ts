interface Disposable {
  dispose(): void;
}

interface Entry<T> {
  readonly value: T;
  lastUse: number;
}

/** A session takes a few hundred kilobytes and half a millisecond: thousands are fine, an unbounded number is not. */
const defaultCapacity = 4096;

/** Keeps what was used most recently; when it is full, the older half is disposed of at once. */
export class SessionCache<T extends Disposable> {
  readonly #entries = new Map<string, Entry<T>>();
  readonly #capacity: number;
  #clock = 0;

  constructor(capacity = defaultCapacity) {
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: string, create: () => T): T {
    let entry = this.#entries.get(key);
    if (!entry) {
      if (this.#entries.size >= this.#capacity) this.#evictOlderHalf();
      entry = { value: create(), lastUse: 0 };
      this.#entries.set(key, entry);
    }
    entry.lastUse = ++this.#clock;
    return entry.value;
  }

  #evictOlderHalf(): void {
    const byAge = [...this.#entries].sort(([, a], [, b]) => a.lastUse - b.lastUse);
    for (const [key, { value }] of byAge.slice(0, Math.ceil(byAge.length / 2))) {
      value.dispose();
      this.#entries.delete(key);
    }
  }
}
