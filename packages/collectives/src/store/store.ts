/** How long one call may wait. */
export interface StoreWaitOptions {
  /** Default: the store's own. */
  readonly timeoutMs?: number;
}

/** Keys and values that all ranks see, for what they must exchange before they are connected. */
export interface Store {
  /** Sets a key; a text is kept as UTF-8. */
  set(key: string, value: Uint8Array | string): Promise<void>;
  /** The value of a key, once it has one. Throws a StoreError that names the key when the time is over. */
  get(key: string, options?: StoreWaitOptions): Promise<Uint8Array>;
  /** Waits until all keys have values. Throws a StoreError that names those that have none. */
  wait(keys: readonly string[], options?: StoreWaitOptions): Promise<void>;
  /** Adds to a whole number, 0 where there is none, and gives the sum. */
  add(key: string, amount: number): Promise<number>;
  /** Sets a key to `value` if it holds `expected`, or nothing where that is null; gives what it holds then. */
  compareAndSet(
    key: string,
    expected: Uint8Array | string | null,
    value: Uint8Array | string,
  ): Promise<Uint8Array | null>;
  /** Deletes all keys that begin so, and gives their number. */
  deletePrefix(prefix: string): Promise<number>;
  close(): void;
}
