/** Something that was queued on a stream. */
interface QueuedWork {
  /** False while it waits for an event. */
  isReady(): boolean;
  run(): void;
}

interface QueuedEvent {
  /** How often it was recorded, and how many of these records have run. */
  recorded: number;
  completed: number;
  timeMs: number;
}

/** A queue longer than this runs a little without being asked, as a GPU would. */
const mostQueued = 256;

/**
 * The streams of an emulated GPU. Work waits until something synchronizes, and what runs first among streams is drawn
 * at random: any order that streams and events allow may come up, so that a missing wait shows. The same seed gives
 * the same orders.
 */
export class EmulatedQueues {
  readonly #queues = new Map<number, QueuedWork[]>();
  /** What streams that are being captured were given. */
  readonly #captured = new Map<number, (() => void)[]>();
  readonly #events = new Map<number, QueuedEvent>();
  #random: number;
  #queued = 0;

  constructor(seed: number) {
    this.#random = seed >>> 0 || 1;
  }

  createStream(): number {
    const handle = this.#queues.size + 1;
    this.#queues.set(handle, []);
    return handle;
  }

  createEvent(): number {
    const handle = this.#events.size + 1;
    this.#events.set(handle, { recorded: 0, completed: 0, timeMs: 0 });
    return handle;
  }

  push(stream: number, run: () => void): void {
    const captured = this.#captured.get(stream);
    if (captured) captured.push(run);
    else this.#add(stream, { isReady: () => true, run });
  }

  /** From now on what the stream is given does not run, until `endCapture` gives it back. */
  beginCapture(stream: number): void {
    this.#captured.set(stream, []);
  }

  /** What the stream was given since `beginCapture`, in its order; null without one. */
  endCapture(stream: number): (() => void)[] | null {
    const captured = this.#captured.get(stream) ?? null;
    this.#captured.delete(stream);
    return captured;
  }

  /** What it was given so far; null where it is not being captured. */
  capturedBy(stream: number): readonly (() => void)[] | null {
    return this.#captured.get(stream) ?? null;
  }

  record(handle: number, stream: number): void {
    const event = this.#events.get(handle)!;
    const record = ++event.recorded;
    this.push(stream, () => {
      event.completed = Math.max(event.completed, record);
      event.timeMs = performance.now();
    });
  }

  /** Lets `stream` wait for the event as it was recorded last. */
  waitFor(stream: number, handle: number): void {
    const event = this.#events.get(handle)!;
    const { recorded } = event;
    this.#add(stream, { isReady: () => event.completed >= recorded, run: () => undefined });
  }

  /** Whether the last record of an event has run; each question lets a little more run. */
  hasCompleted(handle: number): boolean {
    const { completed, recorded } = this.#events.get(handle)!;
    this.#step();
    return completed >= recorded;
  }

  synchronizeStream(stream: number): void {
    const queue = this.#queues.get(stream)!;
    while (queue.length > 0) this.#step();
  }

  synchronizeEvent(handle: number): void {
    const event = this.#events.get(handle)!;
    const { recorded } = event;
    while (event.completed < recorded) this.#step();
  }

  synchronize(): void {
    while (this.#queued > 0) this.#step();
  }

  /** Null unless the last records of both have run. */
  elapsedMs(start: number, end: number): number | null {
    const [from, to] = [this.#events.get(start)!, this.#events.get(end)!];
    if (from.completed < from.recorded || to.completed < to.recorded) return null;
    return to.timeMs - from.timeMs;
  }

  /** Below 2^32. */
  random(): number {
    let x = this.#random;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#random = x >>> 0;
    return this.#random;
  }

  #add(stream: number, work: QueuedWork): void {
    this.#queues.get(stream)!.push(work);
    this.#queued++;
    while (this.#queued > mostQueued) this.#step();
  }

  /** Runs what is first in one of the streams that need not wait. */
  #step(): void {
    const ready = [...this.#queues.values()].filter((queue) => queue[0]?.isReady());
    if (ready.length === 0) return;
    const queue = ready[ready.length === 1 ? 0 : this.random() % ready.length]!;
    this.#queued--;
    queue.shift()!.run();
  }
}
