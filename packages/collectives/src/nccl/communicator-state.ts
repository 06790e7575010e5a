import { ffi } from '@roofline/cuda/host';

/** Calls under way at most: more make the caller wait for the oldest. */
export const mostPending = 1024;

const lockWord = 0;
const startedWord = 1;
const completedWord = 2;
const failureWord = 3;
const checkedWord = 4;
const watchedWord = 5;
const attemptedWord = 6;
const guardWord = 7;
const wordBytes = 4;
/** After the words: since when a thread has been inside, and the address of a GPU's word. */
const enteredByte = 32;
const endedAddressByte = 40;
const headBytes = 64;

const free = 0;
const entered = 1;
const aborted = 2;

const guarding = 0;
const guardEnding = 1;
const guardGone = 2;

/**
 * What the thread that calls a communicator and its watchdog's thread both see: who is in the library with it, and which
 * calls are under way. ncclCommAbort frees the communicator, so neither may be inside when the other calls it.
 */
export class CommunicatorState {
  readonly buffer: SharedArrayBuffer;
  readonly #words: Int32Array<SharedArrayBuffer>;
  readonly #enteredMs: Float64Array;
  readonly #endedAddress: Float64Array;
  readonly #events: Float64Array;
  readonly #startedMs: Float64Array;

  constructor(buffer = new SharedArrayBuffer(headBytes + 2 * 8 * mostPending)) {
    this.buffer = buffer;
    this.#words = new Int32Array(buffer, 0, headBytes / wordBytes);
    this.#enteredMs = new Float64Array(buffer, enteredByte, 1);
    this.#endedAddress = new Float64Array(buffer, endedAddressByte, 1);
    this.#events = new Float64Array(buffer, headBytes, mostPending);
    this.#startedMs = new Float64Array(buffer, headBytes + 8 * mostPending, mostPending);
  }

  /** Whether this thread is now the one that may call the library; false also where there is nothing to call any more. */
  tryEnter(): boolean {
    if (Atomics.compareExchange(this.#words, lockWord, free, entered) !== free) return false;
    this.#enteredMs[0] = Date.now();
    return true;
  }

  /** How long the thread that is inside has been so; meaningless where none is. */
  get insideMs(): number {
    return Date.now() - this.#enteredMs[0]!;
  }

  /** Waits for the other thread; false if the communicator is gone. */
  enter(): boolean {
    while (!this.tryEnter()) {
      if (this.isAborted) return false;
      Atomics.wait(this.#words, lockWord, entered, 1);
    }
    return true;
  }

  /**
   * The same for a call, which fails once the communicator has: the thread that ends it may then be waiting inside for CUDA graphs that
   * this thread has to free.
   */
  enterUnlessFailed(): boolean {
    while (!this.tryEnter()) {
      if (this.isAborted || this.hasFailed) return false;
      Atomics.wait(this.#words, lockWord, entered, 1);
    }
    return true;
  }

  leave(): void {
    this.#unlock(free);
  }

  /** Leaves for the last time: the communicator is gone. */
  leaveAborted(): void {
    this.#unlock(aborted);
  }

  get isAborted(): boolean {
    return Atomics.load(this.#words, lockWord) === aborted;
  }

  /** Said before the library aborts: what has completed since may hold nothing. */
  noteFailure(): void {
    Atomics.store(this.#words, failureWord, 1);
    const address = this.endedWord;
    if (address !== 0) new Uint32Array(ffi().view(address, wordBytes))[0] = 1;
  }

  /** The address of page-locked memory that becomes 1 with a failure, for kernels that wait for other ranks; 0 for none. */
  get endedWord(): number {
    return this.#endedAddress[0]!;
  }

  noteEndedWord(address: number): void {
    new Uint32Array(ffi().view(address, wordBytes))[0] = Number(this.hasFailed);
    this.#endedAddress[0] = address;
  }

  get hasFailed(): boolean {
    return Atomics.load(this.#words, failureWord) !== 0;
  }

  /**
   * Whether the caller is now the one that must abort the guard, the communicator that is there to be aborted while a
   * thread is inside the other. Where another does so, waits for its end: `noteGuardGone`.
   */
  claimGuard(): boolean {
    if (Atomics.compareExchange(this.#words, guardWord, guarding, guardEnding) === guarding) return true;
    while (Atomics.load(this.#words, guardWord) === guardEnding)
      Atomics.wait(this.#words, guardWord, guardEnding, 1);
    return false;
  }

  noteGuardGone(): void {
    Atomics.store(this.#words, guardWord, guardGone);
    Atomics.notify(this.#words, guardWord);
  }

  /** How many calls the program has made, of which the last may still be on its way into the library. */
  get attempted(): number {
    return Atomics.load(this.#words, attemptedWord);
  }

  noteAttempt(): void {
    Atomics.add(this.#words, attemptedWord, 1);
  }

  /** How many calls have begun, and how many of them are known to have completed. */
  get started(): number {
    return Atomics.load(this.#words, startedWord);
  }

  get completed(): number {
    return Atomics.load(this.#words, completedWord);
  }

  /** Notes a call, and the CUevent after it. */
  begin(event: number): void {
    const slot = this.started % mostPending;
    this.#events[slot] = event;
    this.#startedMs[slot] = Date.now();
    Atomics.add(this.#words, startedWord, 1);
  }

  /** Notes that calls up to the one of this number, from 1, have completed. */
  completeUpTo(number: number): void {
    Atomics.store(this.#words, completedWord, Math.max(number, this.completed));
  }

  /** The oldest call that is not known to have completed; null if there is none. */
  oldest(): { readonly number: number; readonly event: number; readonly startedMs: number } | null {
    const { completed } = this;
    if (completed >= this.started) return null;
    const slot = completed % mostPending;
    return { number: completed + 1, event: this.#events[slot]!, startedMs: this.#startedMs[slot]! };
  }

  /** How many calls have been compared with those of the other ranks, where calls wait for that. */
  get checked(): number {
    return Atomics.load(this.#words, checkedWord);
  }

  noteChecked(): void {
    Atomics.add(this.#words, checkedWord, 1);
  }

  /** Whether the watchdog has begun. */
  get isWatched(): boolean {
    return Atomics.load(this.#words, watchedWord) !== 0;
  }

  noteWatched(): void {
    Atomics.store(this.#words, watchedWord, 1);
  }

  #unlock(to: number): void {
    Atomics.store(this.#words, lockWord, to);
    Atomics.notify(this.#words, lockWord);
  }
}
