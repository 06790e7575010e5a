import type { CudaDriver } from './driver.ts';

const nonBlocking = 1;

/** A queue of work on the current device. It does not wait for the legacy default stream. */
export class CudaStream {
  /** The CUstream, for other libraries. */
  readonly handle: number;
  readonly #driver: CudaDriver;

  constructor(driver: CudaDriver) {
    this.#driver = driver;
    this.handle = driver.handleFrom('cuStreamCreate', (out) =>
      driver.functions.cuStreamCreate(out, nonBlocking),
    );
  }

  /** Blocks until everything queued has run. Throws a DeviceError if a kernel failed. */
  synchronize(): void {
    this.#driver.check(this.#driver.functions.cuStreamSynchronize(this.handle), 'cuStreamSynchronize');
  }

  /** Lets what is queued from now on wait for an event of any stream; `event` is a CUevent. */
  waitFor(event: number): void {
    this.#driver.check(this.#driver.functions.cuStreamWaitEvent(this.handle, event, 0), 'cuStreamWaitEvent');
  }
}
