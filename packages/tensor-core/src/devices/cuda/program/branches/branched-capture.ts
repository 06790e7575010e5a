import type { CudaEvent } from '../../driver/event.ts';
import type { CudaStream } from '../../driver/stream.ts';

/**
 * The streams of a graph's branches under capture, and who has waited for whom. All begin behind what the first one, which
 * began the capture, had been given, and end in it.
 */
export class BranchedCapture {
  readonly #ofCalls: readonly number[];
  readonly #streams: readonly CudaStream[];
  /** For each branch, how many calls of each other one it is known to run behind: all below this index. */
  readonly #behind: number[][];
  /** Behind each call. */
  readonly #events: { readonly event: CudaEvent; readonly behind: readonly number[] }[] = [];

  /** `ofCalls` gives the branch of each call, `streams` the stream of each branch. */
  constructor(ofCalls: readonly number[], streams: readonly CudaStream[]) {
    this.#ofCalls = ofCalls;
    this.#streams = streams;
    this.#behind = streams.map(() => streams.map(() => 0));
    const [chain, ...sides] = streams;
    if (sides.length === 0) return;
    using start = chain!.recordEvent({ timing: false });
    for (const side of sides) side.waitFor(start);
  }

  /** The stream of call `i`. */
  streamOf(i: number): CudaStream {
    return this.#streams[this.#ofCalls[i]!]!;
  }

  /** What is queued from now on for call `i` runs behind these, which have been captured. */
  waitFor(i: number, calls: Iterable<number>): void {
    const branch = this.#ofCalls[i]!;
    const latest = new Map<number, number>();
    for (const call of calls) {
      const other = this.#ofCalls[call]!;
      if (other !== branch) latest.set(other, Math.max(call, latest.get(other) ?? call));
    }
    // The latest first: what it is behind itself need not be waited for.
    for (const call of [...latest.values()].sort((a, b) => b - a)) {
      if (this.#behind[branch]![this.#ofCalls[call]!]! > call) continue;
      const { event, behind } = this.#events[call]!;
      this.#streams[branch]!.waitFor(event);
      const own = this.#behind[branch]!;
      behind.forEach((count, other) => (own[other] = Math.max(own[other]!, count)));
    }
  }

  /** Behind the capture of call `i`; they come in their order. */
  noteCaptured(i: number): void {
    if (this.#streams.length === 1) return;
    const branch = this.#ofCalls[i]!;
    this.#behind[branch]![branch] = i + 1;
    const event = this.#streams[branch]!.recordEvent({ timing: false });
    this.#events.push({ event, behind: [...this.#behind[branch]!] });
  }

  /** Lets the chain wait for all that lies beside it. */
  join(): void {
    const [chain, ...sides] = this.#streams;
    for (const side of sides) {
      using event = side.recordEvent({ timing: false });
      chain!.waitFor(event);
    }
    for (const { event } of this.#events) event.dispose();
  }
}
