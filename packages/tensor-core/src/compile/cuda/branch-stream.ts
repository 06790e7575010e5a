import type { CudaEvent, CudaStream } from '@roofline/cuda';
import type { CudaDevice } from '../../backends/cuda/device.ts';
import type { Branches, Lane } from './branches.ts';

/**
 * Of each branch by the stream of the chain, as kernels find memory that they share by their stream: what was captured from two
 * streams may run at the same time.
 */
const streams = {
  beside: new WeakMap<CudaStream, CudaStream>(),
  ordered: new WeakMap<CudaStream, CudaStream>(),
} as const;

/** Other ranks wait for calls with ordered effects. */
const priorities = { beside: 'ops', ordered: 'communication' } as const;

/** The stream on which a capture queues the calls of a branch. */
export class BranchStream {
  readonly #device: CudaDevice;
  readonly #branches: Branches;
  readonly #lane: Exclude<Lane, 'chain'>;
  /** Points that the chain must wait for, each with the place of the call that does, in their order. */
  readonly #pending: { readonly join: number; readonly event: CudaEvent }[] = [];

  constructor(device: CudaDevice, branches: Branches, lane: Exclude<Lane, 'chain'>) {
    this.#device = device;
    this.#branches = branches;
    this.#lane = lane;
  }

  /** Whether calls of the branch may be under way. */
  get isUnderWay(): boolean {
    return this.#pending.length > 0;
  }

  /** Lets the chain wait for what runs beside it, if the call at `place` must. */
  join(place: number): void {
    const due = this.#pending.findLastIndex(({ join }) => join <= place);
    if (due < 0) return;
    const events = this.#pending.splice(0, due + 1).map(({ event }) => event);
    this.#device.stream.waitFor(events.at(-1)!);
    for (const event of events) event.dispose();
  }

  /** Queues a call of the branch. */
  run(place: number, queue: () => void): void {
    const join = this.#branches.get(place)!;
    const stream = this.#stream();
    letWait(stream, this.#device.stream);
    try {
      this.#device.onStream(stream, queue);
    } finally {
      this.#pending.push({ join, event: stream.recordEvent({ timing: false }) });
    }
  }

  #stream(): CudaStream {
    const { stream: chain } = this.#device;
    const ofLane = streams[this.#lane];
    let stream = ofLane.get(chain);
    if (!stream)
      ofLane.set(chain, (stream = this.#device.createStream({ priority: priorities[this.#lane] })));
    return stream;
  }
}

/** Makes later work on `stream` wait for all work queued on `other` so far. */
export function letWait(stream: CudaStream, other: CudaStream): void {
  if (stream === other) return;
  const event = other.recordEvent({ timing: false });
  stream.waitFor(event);
  event.dispose();
}
