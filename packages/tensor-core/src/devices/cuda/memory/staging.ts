import { ffi } from '../../../native/ffi.ts';
import type { CudaDriver } from '../driver/driver.ts';
import type { CudaEvent, EventPool } from '../driver/event.ts';
import type { CudaStream } from '../driver/stream.ts';

const halfBytes = 4 * 2 ** 20;
const alignment = 256;

/**
 * Page-locked host memory through which all copies go: from pageable memory the driver would copy more slowly,
 * and wait for the stream. Two halves take turns, so that one fills while the other is on its way.
 */
export class StagingBuffer {
  readonly #driver: CudaDriver;
  readonly #stream: CudaStream;
  readonly #events: EventPool;
  readonly #address: number;
  readonly #bytes: Uint8Array;
  /** When the copies out of each half have run. */
  readonly #busyUntil: [CudaEvent | null, CudaEvent | null] = [null, null];
  #half: 0 | 1 = 0;
  #used = 0;

  constructor(driver: CudaDriver, stream: CudaStream, events: EventPool) {
    this.#driver = driver;
    this.#stream = stream;
    this.#events = events;
    const { functions } = driver;
    this.#address = driver.handleFrom('cuMemHostAlloc', (out) =>
      functions.cuMemHostAlloc(out, 2 * halfBytes, 0),
    );
    this.#bytes = new Uint8Array(ffi().view(this.#address, 2 * halfBytes));
  }

  /** Queues a copy to the device; `bytes` may be reused when this returns. */
  upload(address: number, bytes: Uint8Array): void {
    for (let done = 0; done < bytes.length;) {
      const count = Math.min(bytes.length - done, halfBytes);
      const start = this.#take(count);
      this.#bytes.set(bytes.subarray(done, done + count), start);
      const { functions } = this.#driver;
      const from = this.#bytes.subarray(start, start + count);
      const result = functions.cuMemcpyHtoDAsync(address + done, from, count, this.#stream.handle);
      this.#driver.check(result, 'cuMemcpyHtoDAsync');
      done += count;
    }
  }

  /** Copies from the device once everything queued before has run. */
  download(address: number, bytes: Uint8Array): void {
    for (let done = 0; done < bytes.length;) {
      const count = Math.min(bytes.length - done, halfBytes);
      const start = this.#take(count);
      const { functions } = this.#driver;
      const to = this.#bytes.subarray(start, start + count);
      const result = functions.cuMemcpyDtoHAsync(to, address + done, count, this.#stream.handle);
      this.#driver.check(result, 'cuMemcpyDtoHAsync');
      this.#stream.synchronize();
      bytes.set(to, done);
      done += count;
    }
  }

  /** The offset of `count` bytes that no copy reads any more. */
  #take(count: number): number {
    if (this.#used + count > halfBytes) {
      this.#busyUntil[this.#half] = this.#events.record(this.#stream);
      this.#half = this.#half === 0 ? 1 : 0;
      this.#busyUntil[this.#half]?.synchronize();
      this.#busyUntil[this.#half] = null;
      this.#used = 0;
    }
    const start = this.#half * halfBytes + this.#used;
    this.#used = Math.min(halfBytes, Math.ceil((this.#used + count) / alignment) * alignment);
    return start;
  }
}
