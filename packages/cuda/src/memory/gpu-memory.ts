import { checkCount, wrongArgument } from '../base/check-value.ts';
import { DisposedError, RooflineError } from '../base/errors.ts';
import type { GpuParts } from '../gpu-parts.ts';
import type { Block } from './block.ts';

/**
 * Memory of a GPU, from `Gpu.allocateMemory` or `Gpu.upload`, which belongs to who asked for it: call `free`, or declare it by
 * `using`. It may be freed while kernels that use it are still queued: nothing else gets it before they have run.
 */
export class GpuMemory {
  readonly byteLength: number;
  readonly #parts: GpuParts;
  #block: Block | null;

  constructor(parts: GpuParts, byteLength: number) {
    this.#parts = parts;
    this.byteLength = byteLength;
    this.#block = parts.memory.allocateStorage(byteLength);
  }

  /**
   * Where it starts, for a kernel's parameter of the letter `p`. Read it anew for each launch: that notes which stream uses
   * the memory. Throws a DisposedError if it was freed.
   */
  get address(): number {
    return this.#used('address').address;
  }

  /**
   * Copies the bytes of a typed array here, from `byteOffset` on, in the order of the current stream; gives this memory back.
   * The array may be changed when this returns. Throws a RooflineError for what is no array or has no room, a DisposedError
   * if it was freed.
   */
  write(values: ArrayBufferView, byteOffset = 0): this {
    const bytes = this.#bytesOf('write', values, byteOffset);
    this.#parts.makeCurrent();
    this.#parts.memory.upload(this.#used('write'), byteOffset, bytes);
    return this;
  }

  /**
   * Fills a typed array with the bytes from `byteOffset` on, once all that the current stream was given before has run;
   * gives the array back. Throws as `write` does, and a DeviceError if a kernel failed.
   */
  read<Values extends ArrayBufferView>(into: Values, byteOffset = 0): Values {
    const bytes = this.#bytesOf('read', into, byteOffset);
    this.#parts.makeCurrent();
    this.#parts.memory.download(this.#used('read'), byteOffset, bytes);
    return into;
  }

  /** Gives it back. Once is enough; more does nothing. */
  free(): void {
    if (!this.#block) return;
    this.#parts.memory.freeStorage(this.#block);
    this.#block = null;
  }

  [Symbol.dispose](): void {
    this.free();
  }

  /** The block, which the current stream uses from now on. */
  #used(what: string): Block {
    const block = this.#block;
    if (!block) throw new DisposedError(`GpuMemory.${what}: this memory was freed; allocate other.`);
    if (this.#parts.streams.areSeveral) block.usedBy(this.#parts.streams.current);
    return block;
  }

  #bytesOf(what: string, values: ArrayBufferView, byteOffset: number): Uint8Array {
    const owner = `GpuMemory.${what}`;
    if (!ArrayBuffer.isView(values)) throw wrongArgument(owner, 'the values', 'a typed array', values);
    checkCount(owner, 'the offset', byteOffset);
    if (byteOffset + values.byteLength > this.byteLength) {
      throw new RooflineError(
        'RANGE',
        `${owner}: ${values.byteLength} bytes at ${byteOffset} reach beyond the ${this.byteLength} of this memory.`,
      );
    }
    return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  }
}
