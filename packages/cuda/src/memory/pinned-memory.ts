import { describeValue } from '../base/check-value.ts';
import { DeviceError } from '../base/errors.ts';
import { ffi } from '../base/host/ffi.ts';
import type { CudaDriver } from '../driver/driver.ts';

/**
 * Page-locked host memory: queued copies (`CudaStream.copy`) read and write it while JavaScript goes on. It belongs to
 * the driver, not to the garbage collector: call `free`.
 */
export class PinnedMemory {
  readonly address: number;
  readonly byteLength: number;
  readonly #driver: CudaDriver;
  #bytes: Uint8Array | null;

  /** The device must be current. Throws a DeviceError if the system gives no more. */
  constructor(driver: CudaDriver, byteLength: number) {
    if (!Number.isSafeInteger(byteLength) || byteLength <= 0) {
      throw new DeviceError(`allocatePinned: ${describeValue(byteLength)} is no number of bytes above zero.`);
    }
    this.#driver = driver;
    this.byteLength = byteLength;
    const call = `cuMemHostAlloc(${byteLength} bytes)`;
    this.address = driver.handleFrom(call, (out) => driver.functions.cuMemHostAlloc(out, byteLength, 0));
    this.#bytes = new Uint8Array(ffi().view(this.address, byteLength));
  }

  /** What it holds. Queued copies change it when they run: wait for them before reading. */
  get bytes(): Uint8Array {
    if (!this.#bytes) throw new DeviceError('This pinned memory was freed.');
    return this.#bytes;
  }

  /**
   * Gives the memory back to the system. No copy that is still to run, and no view of `bytes`, may use it any more.
   * Once is enough; more does nothing.
   */
  free(): void {
    if (!this.#bytes) return;
    this.#bytes = null;
    this.#driver.check(this.#driver.functions.cuMemFreeHost(this.address), 'cuMemFreeHost');
  }

  [Symbol.dispose](): void {
    this.free();
  }
}
