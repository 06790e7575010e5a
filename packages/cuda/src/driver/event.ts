import type { DeviceEvent } from '../base/device-memory.ts';
import { DeviceError } from '../base/errors.ts';
import { type CudaDriver, notReady } from './driver.ts';

/** What to record an event with. */
export interface EventOptions {
  /**
   * Whether `elapsedMs` may be asked for; true unless said otherwise. An event that only orders streams is
   * cheaper without (CU_EVENT_DISABLE_TIMING).
   */
  readonly timing?: boolean;
}

/** A recorded point on a stream; `CudaStream.recordEvent` makes it. */
export class CudaEvent implements DeviceEvent {
  readonly isTimed: boolean;
  readonly #driver: CudaDriver;
  readonly #pool: EventPool;
  #handle: number;

  constructor(driver: CudaDriver, pool: EventPool, handle: number, isTimed: boolean) {
    this.#driver = driver;
    this.#pool = pool;
    this.#handle = handle;
    this.isTimed = isTimed;
  }

  /** The CUevent, for other libraries. Keep this object for as long as they use it. */
  get handle(): number {
    if (this.#handle === 0) throw new DeviceError('This event was disposed of; record another.');
    return this.#handle;
  }

  /** Whether everything queued before this event has run. Does not wait. */
  hasCompleted(): boolean {
    const result = this.#driver.functions.cuEventQuery(this.handle);
    if (result === notReady) return false;
    this.#driver.check(result, 'cuEventQuery');
    return true;
  }

  /** Blocks until everything queued before this event has run. */
  synchronize(): void {
    this.#driver.check(this.#driver.functions.cuEventSynchronize(this.handle), 'cuEventSynchronize');
  }

  elapsedMs(earlier: DeviceEvent): number {
    if (!(earlier instanceof CudaEvent)) {
      throw new DeviceError('elapsedMs: the earlier event was recorded on another kind of device.');
    }
    if (!this.isTimed || !earlier.isTimed) {
      throw new DeviceError('elapsedMs: both events must be recorded with timing, not { timing: false }.');
    }
    earlier.synchronize();
    this.synchronize();
    const { functions, result } = this.#driver;
    const status = functions.cuEventElapsedTime(result.address, earlier.handle, this.handle);
    this.#driver.check(status, 'cuEventElapsedTime');
    return result.floats[0]!;
  }

  /**
   * Lets the pool use the handle again at once, instead of when this object is collected. What waits for the
   * event already goes on waiting for what was queued before it. Once is enough; more does nothing.
   */
  dispose(): void {
    if (this.#handle !== 0) this.#pool.takeBack(this, this.#handle);
    this.#handle = 0;
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}

const disableTiming = 2;

/** Events of one kind that nobody holds any more. */
class IdleEvents {
  readonly handles: number[] = [];
  readonly collected = new FinalizationRegistry<number>((handle) => this.handles.push(handle));
}

/**
 * Makes events, and uses the handles of disposed and collected ones again: creating one costs more than recording
 * it. A handle belongs to one event object at a time.
 */
export class EventPool {
  readonly #driver: CudaDriver;
  readonly #timed = new IdleEvents();
  readonly #untimed = new IdleEvents();

  constructor(driver: CudaDriver) {
    this.#driver = driver;
  }

  /** Records an event after everything queued on `stream`, a CUstream of the current context. */
  record(stream: number, isTimed: boolean): CudaEvent {
    const { functions } = this.#driver;
    const { handles, collected } = isTimed ? this.#timed : this.#untimed;
    const handle =
      handles.pop() ??
      this.#driver.handleFrom('cuEventCreate', (out) =>
        functions.cuEventCreate(out, isTimed ? 0 : disableTiming),
      );
    const event = new CudaEvent(this.#driver, this, handle, isTimed);
    collected.register(event, handle, event);
    this.#driver.check(functions.cuEventRecord(handle, stream), 'cuEventRecord');
    return event;
  }

  /** For `CudaEvent.dispose`. */
  takeBack(event: CudaEvent, handle: number): void {
    const { handles, collected } = event.isTimed ? this.#timed : this.#untimed;
    collected.unregister(event);
    handles.push(handle);
  }
}
