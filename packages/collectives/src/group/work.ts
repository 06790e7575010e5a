import type { RunningCall } from './backend.ts';

/** A collective under way. Its tensors must not be written to until it is done; a disposed one lives on until then. */
export class Work {
  /** The op, as users call it. */
  readonly op: string;
  readonly #onTold: () => void;
  #running: RunningCall | null = null;
  #isDone = false;
  #error: Error | null = null;
  #promise: { promise: Promise<void>; resolve: () => void; reject: (error: Error) => void } | null = null;

  /**
   * Made by groups. `start` begins the call, and calls back once, with null or why it failed. `onTold` is called when
   * that is thrown, or a promise rejects with it.
   */
  constructor(
    op: string,
    start: (settle: (error: Error | null) => void) => RunningCall,
    onTold: () => void = () => {},
  ) {
    this.op = op;
    this.#onTold = onTold;
    const running = start((error) => this.#settle(error));
    if (!this.#isDone) this.#running = running;
  }

  /** Whether it has ended, well or not. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /** Resolves when the result is there. Rejects with the CollectiveError that `wait` throws. */
  get done(): Promise<void> {
    if (!this.#promise) {
      this.#promise = Promise.withResolvers<void>();
      if (this.#isDone) this.#tell();
    }
    return this.#promise.promise;
  }

  /**
   * On the CPU, blocks this thread until the result is there. On a GPU, makes the current stream wait for it and returns
   * at once: what is queued from now on sees it. Throws a CollectiveError where the call is known to have failed; a
   * failure that a GPU's stream only meets later rejects `done`, and is thrown by the group's next call.
   */
  wait(): void {
    this.#running?.wait();
    if (!this.#error) return;
    this.#onTold();
    throw this.#error;
  }

  #settle(error: Error | null): void {
    this.#isDone = true;
    this.#running = null;
    this.#error = error;
    if (this.#promise) this.#tell();
  }

  #tell(): void {
    if (!this.#error) return this.#promise!.resolve();
    this.#promise!.reject(this.#error);
    this.#onTold();
  }
}
