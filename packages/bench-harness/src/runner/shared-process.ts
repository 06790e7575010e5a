import { CellProcess } from './cell-process.ts';

/** The process that cells which may share one follow one another in, and those of the others. */
export class SharedProcess implements AsyncDisposable {
  #waiting: CellProcess | null = null;

  /** The process of the next cell: of one that may share it that of the cell before, if it goes on, and else a new one. */
  async next(isShared: boolean): Promise<CellProcess> {
    if (isShared && this.#waiting?.isReady) return this.#waiting;
    // Two would share the GPU's memory.
    await this[Symbol.asyncDispose]();
    const started = new CellProcess();
    if (isShared) this.#waiting = started;
    return started;
  }

  /** Ends the one that waits for a cell. */
  async [Symbol.asyncDispose](): Promise<void> {
    const waiting = this.#waiting;
    this.#waiting = null;
    await waiting?.end();
  }
}
