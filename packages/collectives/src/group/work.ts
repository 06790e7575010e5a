import { checkFunction } from '@roofline/tensor-core';
import { currentTrace } from '@roofline/tensor-core/kernel-api';
import type { RunningCall, TimeSpan } from './backend.ts';

const observers = new Set<(work: Work) => void>();

/**
 * Calls `observer`, which must not throw, with every collective that begins, of any group. Returns a function that ends
 * that. Throws a RooflineError (code ARGUMENT) for what is not a function.
 */
export function observeWorks(observer: (work: Work) => void): () => void {
  checkFunction('observeWorks', 'the observer', observer);
  observers.add(observer);
  return () => void observers.delete(observer);
}

/** A collective under way. Its tensors must not be written to until it is done; a disposed one lives on until then. */
export class Work {
  /** The op, as users call it. */
  readonly op: string;
  readonly #onTold: () => void;
  #running: RunningCall | null = null;
  #isDone = false;
  #ran: TimeSpan | null = null;
  #error: Error | null = null;
  /** Whether it is an op of a compiled function, whose readers wait for it. */
  #isReplayed = false;
  #promise: { promise: Promise<void>; resolve: () => void; reject: (error: Error) => void } | null = null;

  /**
   * Made by groups. `start` begins the call, and calls back once, with null or why it failed. `onTold` is called when
   * that is thrown, or a promise rejects with it.
   */
  constructor(
    op: string,
    start: (settle: (error: Error | null, ran?: TimeSpan) => void) => RunningCall,
    onTold: () => void = () => {},
  ) {
    this.op = op;
    this.#onTold = onTold;
    const running = start((error, ran) => this.#settle(error, ran));
    if (!this.#isDone) this.#running = running;
    for (const observer of [...observers]) observer(this);
  }

  /** Of an op in a function that is being compiled: it is done for those who wait, and readers of its result wait by themselves. */
  static ofOp(op: string): Work {
    const work = new Work(op, (settle) => {
      settle(null);
      return { wait: () => {} };
    });
    work.#isReplayed = true;
    return work;
  }

  /** Whether it has ended, well or not. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /**
   * When its data moved: from when all ranks had come, to its end. Null before it is done, where it failed, and with
   * NCCL, whose kernels a `profile` shows.
   */
  get ran(): TimeSpan | null {
    return this.#ran;
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
   * failure that a GPU's stream only meets later rejects `done`, and is thrown by the group's next call. Throws a CompileError
   * inside a compiled function, whose replays would not wait.
   */
  wait(): void {
    if (this.#isReplayed) return;
    currentTrace()?.refuse(
      `it waits for ${this.op}, which replays would not`,
      'Wait outside, before you call the compiled function',
    );
    this.#running?.wait();
    if (!this.#error) return;
    this.#onTold();
    throw this.#error;
  }

  #settle(error: Error | null, ran: TimeSpan | null = null): void {
    this.#isDone = true;
    this.#ran = error ? null : ran;
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
