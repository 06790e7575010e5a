import type { RunningCall } from './backend.ts';

/** A collective under way. Its tensors must not be written to until it is done; a disposed one lives on until then. */
export class Work {
  /** The op, as users call it. */
  readonly op: string;
  #running: RunningCall | null = null;
  #isDone = false;
  #error: Error | null = null;
  #promise: { promise: Promise<void>; resolve: () => void; reject: (error: Error) => void } | null = null;

  /** Made by groups. `start` begins the call, and calls back once, with null or why it failed. */
  constructor(op: string, start: (settle: (error: Error | null) => void) => RunningCall) {
    this.op = op;
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

  /** Blocks this thread until the result is there. Throws a CollectiveError. */
  wait(): void {
    this.#running?.wait();
    if (this.#error) throw this.#error;
  }

  #settle(error: Error | null): void {
    this.#isDone = true;
    this.#running = null;
    this.#error = error;
    if (this.#promise) this.#tell();
  }

  #tell(): void {
    if (this.#error) this.#promise!.reject(this.#error);
    else this.#promise!.resolve();
  }
}
