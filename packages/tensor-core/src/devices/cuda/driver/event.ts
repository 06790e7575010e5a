import type { DeviceEvent } from '../../device.ts';
import { DeviceError } from '../../../errors.ts';
import type { CudaDriver } from './driver.ts';
import type { CudaStream } from './stream.ts';

/** A recorded point on a stream. */
export class CudaEvent implements DeviceEvent {
  /** The CUevent, for other libraries and for `CudaStream.waitFor`. */
  readonly handle: number;
  readonly #driver: CudaDriver;

  constructor(driver: CudaDriver, handle: number) {
    this.#driver = driver;
    this.handle = handle;
  }

  /** Blocks until everything queued before this event has run. */
  synchronize(): void {
    this.#driver.check(this.#driver.functions.cuEventSynchronize(this.handle), 'cuEventSynchronize');
  }

  elapsedMs(earlier: DeviceEvent): number {
    if (!(earlier instanceof CudaEvent)) {
      throw new DeviceError('elapsedMs: the earlier event was recorded on another kind of device.');
    }
    this.synchronize();
    const { functions, result } = this.#driver;
    const status = functions.cuEventElapsedTime(result.address, earlier.handle, this.handle);
    this.#driver.check(status, 'cuEventElapsedTime');
    return result.floats[0]!;
  }
}

/** Makes events, and uses the handles of collected ones again: creating one costs more than recording it. */
export class EventPool {
  readonly #driver: CudaDriver;
  readonly #idle: number[] = [];
  readonly #collected = new FinalizationRegistry<number>((handle) => this.#idle.push(handle));

  constructor(driver: CudaDriver) {
    this.#driver = driver;
  }

  /** Records an event behind everything queued on `stream`. */
  record(stream: CudaStream): CudaEvent {
    const { functions } = this.#driver;
    const handle =
      this.#idle.pop() ?? this.#driver.handleFrom('cuEventCreate', (out) => functions.cuEventCreate(out, 0));
    const event = new CudaEvent(this.#driver, handle);
    this.#collected.register(event, handle);
    this.#driver.check(functions.cuEventRecord(handle, stream.handle), 'cuEventRecord');
    return event;
  }
}
