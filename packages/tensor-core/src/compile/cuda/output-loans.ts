import { OutOfMemoryError } from '@roofline/cuda/host';
import type { Graph } from '../graph/graph.ts';
import { Storage } from '../../tensor/storage/storage.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { CudaDevice } from '../../backends/cuda/device.ts';
import type { Block } from '@roofline/cuda/parts';
import type { MemoryPool } from '@roofline/cuda';

/**
 * The parts of an arena that are results and gradients. Tensors have them until the next run: those still held by then are
 * moved to memory of their own before the CUDA graph writes there. Usually none are, and nothing is copied.
 */
export class OutputLoans {
  readonly #device: CudaDevice;
  readonly #gradients: ReadonlyMap<number, Tensor>;
  readonly #parts = new Map<number, Storage>();

  /** Allocates the parts at `addresses`, which are free in `pool`. */
  constructor(
    { device, storages, gradients }: Graph,
    addresses: ReadonlyMap<number, number>,
    pool: MemoryPool,
  ) {
    this.#device = device as CudaDevice;
    this.#gradients = gradients;
    for (const [number, address] of addresses) {
      const { byteLength } = storages[number]!;
      const part = this.#device.withPool(pool, () => this.#device.allocateAt(address, byteLength));
      this.#put(number, new Storage(this.#device, byteLength, part));
    }
  }

  /** All parts, each with one reference for its taker. */
  lend(): Map<number, Storage> {
    const lent = new Map<number, Storage>();
    for (const [number, storage] of this.#parts) lent.set(number, storage.retain());
    return lent;
  }

  /** Takes all parts back for a run that is about to write them on the current stream. */
  takeBack(): void {
    for (const { buffer } of this.#parts.values()) (buffer as Block).awaitUsers(this.#device.stream);
    // The run replaces a leaf's gradient, so the reference by its `grad` does not count.
    this.#leaveHeld((number, storage) => (this.#gradients.get(number)?.grad?.storage === storage ? 2 : 1));
  }

  /**
   * Gives the parts, which no work under way uses, back to their pool; those still held are first moved to memory of their
   * own. Where the device has none left, they stay where they are, and the pool keeps its segment until they are freed.
   */
  dispose(): void {
    try {
      this.#leaveHeld(() => 1);
    } catch (error) {
      if (!(error instanceof OutOfMemoryError)) throw error;
    }
    for (const storage of this.#parts.values()) {
      storage.settle = null;
      storage.release();
    }
    this.#parts.clear();
  }

  #put(number: number, storage: Storage): void {
    storage.settle = () => {
      this.#leave(number);
      this.#device.holdBackOtherStreams();
    };
    this.#parts.set(number, storage);
  }

  /** Moves out all parts that have more references than `referencesOf` says do not count. */
  #leaveHeld(referencesOf: (number: number, part: Storage) => number): void {
    const held = [...this.#parts].filter(
      ([number, storage]) => storage.references > referencesOf(number, storage),
    );
    if (held.length === 0) return;
    try {
      for (const [number] of held) this.#leave(number);
    } finally {
      this.#device.holdBackOtherStreams();
    }
  }

  /**
   * Moves a part's elements to memory of their own. Their holders may use them on any stream that waits for this one; having
   * waited for the run is not enough.
   */
  #leave(number: number): void {
    const held = this.#parts.get(number)!;
    const part = new Storage(this.#device, held.byteLength);
    this.#device.stream.copy(part.buffer.address, held.buffer.address, held.byteLength);
    const { buffer } = part;
    part.buffer = held.buffer;
    held.buffer = buffer;
    held.settle = null;
    held.release();
    this.#put(number, part);
  }
}
