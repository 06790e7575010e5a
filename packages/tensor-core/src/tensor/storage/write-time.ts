let last = 0;

/** A point in the order of all writes to storages, behind those before it; the first is 1. */
export function nextWriteTime(): number {
  return ++last;
}

/** A time that many share, such as all that a compiled program writes: noted once for all of them. */
export class JointTime {
  #time = 0;

  /** When it was noted last; 0 before the first time. */
  get time(): number {
    return this.#time;
  }

  note(): void {
    this.#time = nextWriteTime();
  }
}
