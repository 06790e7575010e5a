import { OutOfMemoryError } from '../../base/errors.ts';
import type { Program } from '../graph/graph.ts';
import { Storage } from '../../tensor/storage/storage.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { CudaDevice } from '../../backends/cuda/device.ts';
import type { Block } from '../../cuda/memory/block.ts';
import type { MemoryPool } from '../../cuda/memory/memory-pool.ts';

/**
 * The parts of a program's arena that its results and gradients are. Tensors have them until the program runs again: whoever
 * still holds one by then gets its elements in memory of its own, before the graph writes there. Mostly nobody does, and
 * nothing is copied.
 */
export class OutputLoans {
  readonly #device: CudaDevice;
  readonly #gradients: ReadonlyMap<number, Tensor>;
  readonly #parts = new Map<number, Storage>();

  /** Takes the parts, which begin at `addresses`, out of what is free of `pool`. */
  constructor(
    { device, storages, gradients }: Program,
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

  /** All parts, each retained for whoever gets it. */
  lend(): Map<number, Storage> {
    const lent = new Map<number, Storage>();
    for (const [number, storage] of this.#parts) lent.set(number, storage.retain());
    return lent;
  }

  /** Makes all parts the graph's, which is about to write them on the current stream. */
  takeBack(): void {
    for (const { buffer } of this.#parts.values()) (buffer as Block).awaitUsers(this.#device.stream);
    // The run replaces a leaf's gradient, which its `grad` need not keep.
    this.#leaveHeld((number, storage) => (this.#gradients.get(number)?.grad?.storage === storage ? 2 : 1));
  }

  /**
   * Gives the parts, which nothing works on any more, back to their pool, but first memory of their own to all that hold
   * one. Where the device has none left, what is held stays where it is, and the pool keeps its segment until it is freed.
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

  /** Makes all parts leave that have more references than those that count for nothing. */
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
   * Moves a part's elements to memory of their own, where their holders find them from now on: on any stream that waits for
   * this one, as those do not that have waited for the run.
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
