import type { CudaStream, Streams } from '../driver/stream.ts';

/**
 * Memory that a kernel keeps from launch to launch, zeroed when it is handed out first: at least `byteLength` bytes of
 * the current stream's own, the same for the same `name` until more is asked for.
 */
export type Scratch = (name: string, byteLength: number) => number;

interface KeptMemory {
  readonly address: number;
  readonly byteLength: number;
}

/** The scratch of a device's streams: launches on two streams may run at once, so none is shared between them. */
export class StreamScratch {
  readonly #streams: Streams;
  readonly #allocate: (byteLength: number) => number;
  readonly #kept = new WeakMap<CudaStream, Map<string, KeptMemory>>();

  /** `allocate` gives zeroed memory that is never freed: a captured graph may hold its address. */
  constructor(streams: Streams, allocate: (byteLength: number) => number) {
    this.#streams = streams;
    this.#allocate = allocate;
  }

  /** See `Scratch`. */
  take(name: string, byteLength: number): number {
    const stream = this.#streams.current;
    let kept = this.#kept.get(stream);
    if (!kept) this.#kept.set(stream, (kept = new Map()));
    const held = kept.get(name);
    if (held && held.byteLength >= byteLength) return held.address;
    if (byteLength === 0) return 0;
    const address = this.#allocate(byteLength);
    kept.set(name, { address, byteLength });
    return address;
  }
}
