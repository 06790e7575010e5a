import type { CudaDriver } from '../driver/driver.ts';
import type { CudaEvent } from '../driver/event.ts';
import type { CudaStream } from '../driver/stream.ts';
import { PinnedMemory } from './pinned-memory.ts';

const halfBytes = 4 * 2 ** 20;
const alignment = 256;

/**
 * Page-locked host memory through which all copies of one stream go: from pageable memory the driver would copy more
 * slowly, and wait for the stream. Two halves take turns, so that one fills while the other is on its way.
 */
export class StagingBuffer {
  readonly #stream: CudaStream;
  readonly #memory: PinnedMemory;
  /** When the copies out of each half have run. */
  readonly #busyUntil: [CudaEvent | null, CudaEvent | null] = [null, null];
  #half: 0 | 1 = 0;
  #used = 0;

  constructor(driver: CudaDriver, stream: CudaStream) {
    this.#stream = stream;
    this.#memory = new PinnedMemory(driver, 2 * halfBytes);
  }

  /** Queues a copy to the device; `bytes` may be reused when this returns. */
  upload(address: number, bytes: Uint8Array): void {
    for (let done = 0; done < bytes.length;) {
      const count = Math.min(bytes.length - done, halfBytes);
      const start = this.#take(count);
      this.#memory.bytes.set(bytes.subarray(done, done + count), start);
      this.#stream.copy(address + done, this.#memory.address + start, count);
      done += count;
    }
  }

  /** Copies from the device once everything queued before has run. */
  download(address: number, bytes: Uint8Array): void {
    for (let done = 0; done < bytes.length;) {
      const count = Math.min(bytes.length - done, halfBytes);
      const start = this.#take(count);
      this.#stream.copy(this.#memory.address + start, address + done, count);
      this.#stream.synchronize();
      bytes.set(this.#memory.bytes.subarray(start, start + count), done);
      done += count;
    }
  }

  /** The offset of `count` bytes that no copy reads any more. */
  #take(count: number): number {
    if (this.#used + count > halfBytes) {
      this.#busyUntil[this.#half] = this.#stream.recordEvent({ timing: false });
      this.#half = this.#half === 0 ? 1 : 0;
      const busy = this.#busyUntil[this.#half];
      busy?.synchronize();
      busy?.dispose();
      this.#busyUntil[this.#half] = null;
      this.#used = 0;
    }
    const start = this.#half * halfBytes + this.#used;
    this.#used = Math.min(halfBytes, Math.ceil((this.#used + count) / alignment) * alignment);
    return start;
  }
}
