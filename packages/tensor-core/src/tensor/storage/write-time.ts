let last = 0;

/** The next point in the order of all writes to storages; the first is 1. */
export function nextWriteTime(): number {
  return ++last;
}

/** A time shared by many writes, such as all writes of a compiled graph, which are recorded at once. */
export class JointTime {
  #time = 0;

  /** When it was last noted; 0 before the first time. */
  get time(): number {
    return this.#time;
  }

  note(): void {
    this.#time = nextWriteTime();
  }
}
