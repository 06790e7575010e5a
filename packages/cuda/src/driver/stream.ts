import { DeviceError } from '../base/errors.ts';
import type { CudaDriver } from './driver.ts';
import { checkOptions } from '../base/check-options.ts';
import { checkCount, checkFlag, checkNumber, describeValue, wrongArgument } from '../base/check-value.ts';
import { CudaEvent, type EventOptions, type EventPool } from './event.ts';

const nonBlocking = 1;

/**
 * Which blocks of kernels a GPU begins first where streams work at the same time; CUDA gives lower numbers to what is more
 * urgent. Other ranks wait for communication.
 */
export const streamPriorities = { ops: 0, communication: -1 } as const;
/** What a stream is for, by which a GPU begins its kernels before those of others or after them. */
export type StreamPriority = keyof typeof streamPriorities;

/** What a stream needs of its device. */
export interface StreamParts {
  readonly driver: CudaDriver;
  readonly events: EventPool;
  /** Directs this thread's driver calls to the device. */
  makeCurrent(): void;
}

/**
 * A queue of work on one device; `CudaDevice.createStream` makes one, and `CudaDevice.onStream` queues ops on it.
 * Work on different streams has no order but that of `waitFor`, and none waits for the legacy default stream.
 * Streams live as long as the process: make a few and keep them.
 */
export class CudaStream {
  /** The CUstream, for other libraries. */
  readonly handle: number;
  readonly #parts: StreamParts;
  readonly #driver: CudaDriver;

  constructor(parts: StreamParts, priority: StreamPriority = 'ops') {
    this.#parts = parts;
    this.#driver = parts.driver;
    parts.makeCurrent();
    this.handle = this.#driver.handleFrom('cuStreamCreateWithPriority', (out) =>
      this.#driver.functions.cuStreamCreateWithPriority(out, nonBlocking, streamPriorities[priority]),
    );
  }

  /** Blocks until everything queued has run. Throws a DeviceError if a kernel failed. */
  synchronize(): void {
    this.#parts.makeCurrent();
    this.#driver.check(this.#driver.functions.cuStreamSynchronize(this.handle), 'cuStreamSynchronize');
  }

  /** Records a point after everything queued so far. */
  recordEvent(options: EventOptions = {}): CudaEvent {
    checkOptions('recordEvent', options, ['timing']);
    const { timing = true } = options;
    checkFlag('recordEvent', 'timing', timing);
    this.#parts.makeCurrent();
    return this.#parts.events.record(this.handle, timing);
  }

  /** Lets what is queued from now on wait for an event, of another stream or another device too. */
  waitFor(event: CudaEvent): void {
    if (!(event instanceof CudaEvent))
      throw wrongArgument('waitFor', 'the event', 'one of recordEvent()', event);
    this.#parts.makeCurrent();
    const { cuStreamWaitEvent } = this.#driver.functions;
    this.#driver.check(cuStreamWaitEvent(this.handle, event.handle, 0), 'cuStreamWaitEvent');
  }

  /**
   * Queues a copy of `byteLength` bytes between addresses of device memory and `PinnedMemory`, in any direction.
   * Both must stay as they are until it has run.
   */
  copy(to: number, from: number, byteLength: number): void {
    checkCount('copy', 'the address copied to', to);
    checkCount('copy', 'the address copied from', from);
    checkCount('copy', 'the number of bytes', byteLength);
    if (byteLength === 0) return;
    this.#parts.makeCurrent();
    const { cuMemcpyAsync } = this.#driver.functions;
    this.#driver.check(cuMemcpyAsync(to, from, byteLength, this.handle), 'cuMemcpyAsync');
  }

  /** Queues setting `byteLength` bytes at a device address to `value`. */
  fill(address: number, value: number, byteLength: number): void {
    checkCount('fill', 'the address', address);
    checkNumber('fill', 'the value', value, 'a byte from 0 to 255', (byte) => (byte & 255) === byte);
    checkCount('fill', 'the number of bytes', byteLength);
    if (byteLength === 0) return;
    this.#parts.makeCurrent();
    const { cuMemsetD8Async } = this.#driver.functions;
    this.#driver.check(cuMemsetD8Async(address, value, byteLength, this.handle), 'cuMemsetD8Async');
  }

  /**
   * Queues a call of the C function `void f(void *argument)` at the address `hostFunction`, on a thread of the driver.
   * It must not call CUDA. A JavaScript function cannot stand there: while `synchronize` blocks this thread it could
   * not run, and the stream would never end. Throws a DeviceError for an address of zero.
   */
  launchHostFunction(hostFunction: number, argument = 0): void {
    if (!Number.isSafeInteger(hostFunction) || hostFunction <= 0) {
      const given = describeValue(hostFunction);
      throw new DeviceError(`launchHostFunction: takes the address of a C function, not ${given}.`);
    }
    checkCount('launchHostFunction', 'the argument', argument);
    this.#parts.makeCurrent();
    const { cuLaunchHostFunc } = this.#driver.functions;
    this.#driver.check(cuLaunchHostFunc(this.handle, hostFunction, argument), 'cuLaunchHostFunc');
  }
}

/** Which stream launches and library calls go to now. */
export interface CurrentStream {
  readonly current: { readonly handle: number };
}

/** The streams of a device, and which of them work is queued on now. */
export class Streams {
  current: CudaStream;
  readonly #parts: StreamParts;
  readonly #all: CudaStream[];

  constructor(parts: StreamParts) {
    this.#parts = parts;
    this.current = new CudaStream(parts);
    this.#all = [this.current];
  }

  /** Whether there is more than the first one, so that it matters which stream uses what memory. */
  get areSeveral(): boolean {
    return this.#all.length > 1;
  }

  create(priority?: StreamPriority): CudaStream {
    const stream = new CudaStream(this.#parts, priority);
    this.#all.push(stream);
    return stream;
  }

  has(stream: CudaStream): boolean {
    return this.#all.includes(stream);
  }

  /** Lets what is queued on the others from now on wait for what the current one has been given so far. */
  holdBackOthers(): void {
    if (!this.areSeveral) return;
    const event = this.current.recordEvent({ timing: false });
    for (const stream of this.#all) if (stream !== this.current) stream.waitFor(event);
    event.dispose();
  }

  /** Blocks until everything queued on any of them has run. */
  synchronize(): void {
    for (const stream of this.#all) stream.synchronize();
  }
}
