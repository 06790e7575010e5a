import {
  captureIsolation,
  captureMerge,
  captureUnjoined,
  captureUnmatched,
  capturedEvent,
  invalidValue,
} from './emulated-results.ts';

/** Something that was queued on a stream. */
interface QueuedWork {
  /** False while it waits for an event. */
  isReady(): boolean;
  run(): void;
}

/** Something that a stream under capture was given, and what must run before it. */
export interface CapturedWork {
  readonly run: () => void;
  /** A kernel, a copy or a fill, and not a function of the host. */
  readonly isActivity: boolean;
  readonly after: readonly CapturedWork[];
}

/** What the streams of one capture were given. */
interface Capture {
  /** The stream that it began on. */
  readonly origin: number;
  readonly works: CapturedWork[];
  /** By stream, what the next work of it must run after. */
  readonly last: Map<number, readonly CapturedWork[]>;
}

interface QueuedEvent {
  /** How often it was recorded, and how many of these records have run. */
  recorded: number;
  completed: number;
  timeMs: number;
  /** Of an event that was recorded in a capture last: what waits for it waits for these. */
  captured: { readonly capture: Capture; readonly works: readonly CapturedWork[] } | null;
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
  /** By stream, those under way. */
  readonly #captures = new Map<number, Capture>();
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
    this.#events.set(handle, { recorded: 0, completed: 0, timeMs: 0, captured: null });
    return handle;
  }

  push(stream: number, run: () => void, isActivity = true): void {
    const capture = this.#captures.get(stream);
    if (!capture) return this.#add(stream, { isReady: () => true, run });
    const work = { run, isActivity, after: capture.last.get(stream)! };
    capture.works.push(work);
    capture.last.set(stream, [work]);
  }

  /** From now on what the stream is given does not run, until `endCapture` gives it back. */
  beginCapture(stream: number): void {
    this.#captures.set(stream, { origin: stream, works: [], last: new Map([[stream, []]]) });
  }

  /** What the stream, and those that joined it, were given since `beginCapture`; or a CUresult. */
  endCapture(stream: number): readonly CapturedWork[] | number {
    const capture = this.#captures.get(stream);
    if (!capture) return invalidValue;
    if (capture.origin !== stream) return captureUnmatched;
    for (const joined of capture.last.keys()) this.#captures.delete(joined);
    const ends = [...capture.last.values()].flat();
    const before = allBefore(capture.last.get(stream)!);
    return ends.every((end) => before.has(end)) ? capture.works : captureUnjoined;
  }

  /** What its capture was given so far, and what its own next work must run after; null where it is not being captured. */
  capturedBy(
    stream: number,
  ): { readonly works: readonly CapturedWork[]; readonly last: readonly CapturedWork[] } | null {
    const capture = this.#captures.get(stream);
    return capture ? { works: capture.works, last: capture.last.get(stream)! } : null;
  }

  record(handle: number, stream: number): void {
    const event = this.#events.get(handle)!;
    const capture = this.#captures.get(stream);
    event.captured = capture ? { capture, works: capture.last.get(stream)! } : null;
    if (capture) return;
    const record = ++event.recorded;
    this.push(stream, () => {
      event.completed = Math.max(event.completed, record);
      event.timeMs = performance.now();
    });
  }

  /** Lets `stream` wait for the event as it was recorded last; a stream joins the capture of an event. Gives a CUresult. */
  waitFor(stream: number, handle: number): number {
    const event = this.#events.get(handle)!;
    const capture = this.#captures.get(stream);
    if (event.captured) return this.#waitInCapture(stream, event.captured);
    // Its graph would wait for what is no part of it.
    if (capture) return captureIsolation;
    const { recorded } = event;
    this.#add(stream, { isReady: () => event.completed >= recorded, run: () => undefined });
    return 0;
  }

  #waitInCapture(stream: number, { capture, works }: NonNullable<QueuedEvent['captured']>): number {
    const own = this.#captures.get(stream);
    // The event outlives the capture that it was recorded in, but nothing can wait for it any more.
    if (this.#captures.get(capture.origin) !== capture) return capturedEvent;
    if (own && own !== capture) return captureMerge;
    this.#captures.set(stream, capture);
    capture.last.set(stream, [...new Set([...(capture.last.get(stream) ?? []), ...works])]);
    return 0;
  }

  /** Whether an event was recorded last in a capture, so that it never runs. */
  isCaptured(handle: number): boolean {
    return this.#events.get(handle)!.captured !== null;
  }

  /**
   * Gives the stream the works of a graph, each to run after those at the places that it names: among those that need not wait,
   * which is next is drawn at random, as it is between them and the work of other streams.
   */
  pushGraph(
    stream: number,
    works: readonly { readonly run: () => void; readonly after: readonly number[] }[],
  ): void {
    const missing = works.map(({ after }) => after.length);
    const followers = works.map((): number[] => []);
    works.forEach(({ after }, i) => after.forEach((before) => followers[before]!.push(i)));
    const ready = missing.flatMap((count, i) => (count === 0 ? [i] : []));
    const runNext = () => {
      const drawn = ready.length === 1 ? 0 : this.random() % ready.length;
      const [next] = ready.splice(drawn, 1);
      works[next!]!.run();
      for (const follower of followers[next!]!) if (--missing[follower]! === 0) ready.push(follower);
    };
    for (let i = 0; i < works.length; i++) this.push(stream, runNext);
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

/** Those of `works`, and all that must run before them. */
function allBefore(works: readonly CapturedWork[]): ReadonlySet<CapturedWork> {
  const found = new Set(works);
  for (const { after } of found) for (const work of after) found.add(work);
  return found;
}
