import { checkCount, checkObject, checkText, describeValue, wrongArgument } from '../../base/check-value.ts';
import type { MemoryView } from '../../base/memory-view.ts';
import type { Device } from '../../tensor/device.ts';
import type { DeviceBuffer, MemoryStatistics } from '../../base/device-memory.ts';
import { DeviceError } from '../../base/errors.ts';
import type { MemoryObserver, MemorySegment } from '../../base/memory-observer.ts';
import { HostMemory } from '../../base/host/host-memory.ts';
import type { Op } from '../../op/op.ts';
import { architectureOf } from '../../cuda/architecture.ts';
import { type DeviceParts, nvidiaParts } from './device-parts.ts';
import type { CudaDriver } from '../../cuda/driver/driver.ts';
import { type CudaEvent, type EventOptions, EventPool } from '../../cuda/driver/event.ts';
import { Launcher } from '../../cuda/launch/launch.ts';
import { type TensorMapDescription, TensorMapEncoder } from '../../cuda/launch/tensor-map.ts';
import { CudaLowering } from './lower.ts';
import type { KernelBuilder } from '../../cuda/nvrtc/compile.ts';
import { type CompilableKernel, checkKernels } from '../../cuda/nvrtc/compile-kernels.ts';
import { KernelModules } from '../../cuda/nvrtc/modules.ts';
import { Block } from '../../cuda/memory/block.ts';
import { DeviceMemory } from '../../cuda/memory/device-memory.ts';
import { MemoryPool, type SegmentSize, segmentSizes } from '../../cuda/memory/memory-pool.ts';
import { PinnedMemory } from '../../cuda/memory/pinned-memory.ts';
import { type Scratch, StreamScratch } from '../../cuda/memory/stream-scratch.ts';
import { type DeviceFacts, describeFacts, readFacts } from '../../cuda/properties.ts';
import { type CudaStream, type StreamPriority, Streams, streamPriorities } from '../../cuda/driver/stream.ts';
import { checkOptions } from '../../base/check-options.ts';
import { refuseAsync, refusePromise } from '../../base/synchronous.ts';

/** The CUDA context that this thread's driver calls go to. */
let currentContext = 0;

/** The parts of a device that capture ops as a CUDA graph. */
export interface DeviceInternals {
  readonly device: CudaDevice;
  readonly driver: CudaDriver;
  readonly launcher: Launcher;
  readonly lowering: CudaLowering;
  readonly builder: KernelBuilder;
}

/**
 * An NVIDIA GPU. Open it with `device('cuda:0')`; `cudaDevice` of `@roofline/tensor-core/native` returns this type. Ops are
 * queued on its current stream and take memory from its current pool; `onStream` and `withPool` change them.
 */
export class CudaDevice implements Device {
  readonly type = 'cuda';
  readonly index: number;
  readonly label: string;
  readonly name: string;
  readonly facts: DeviceFacts;
  readonly #driver: CudaDriver;
  readonly #context: number;
  readonly #streams: Streams;
  readonly #memory: DeviceMemory;
  readonly #scratch: Scratch;
  readonly #launcher: Launcher;
  readonly #builder: KernelBuilder;
  readonly #lowering: CudaLowering;
  readonly #tensorMaps: TensorMapEncoder;

  constructor(driver: CudaDriver, index: number, parts: DeviceParts = nvidiaParts()) {
    const { functions } = driver;
    this.#driver = driver;
    this.index = index;
    this.label = `cuda:${index}`;
    const handle = driver.intFrom('cuDeviceGet', (out) => functions.cuDeviceGet(out, index));
    this.facts = readFacts(driver, handle);
    this.name = this.facts.name;
    this.#builder = parts.makeBuilder(architectureOf(this.facts.computeCapability));
    this.#context = driver.handleFrom('cuDevicePrimaryCtxRetain', (out) =>
      functions.cuDevicePrimaryCtxRetain(out, handle),
    );
    const common = { driver, events: new EventPool(driver), makeCurrent: () => this.makeCurrent() };
    const streams = new Streams(common);
    const { label } = this;
    const memory = new DeviceMemory({ ...common, ...parts, streams, label });
    this.#streams = streams;
    this.#memory = memory;
    this.#tensorMaps = new TensorMapEncoder(driver);
    const kept = new StreamScratch(streams, (byteLength) => memory.allocatePermanent(byteLength));
    const scratch = (name: string, byteLength: number) => kept.take(name, byteLength);
    this.#scratch = scratch;
    const launcher = new Launcher(driver, streams);
    this.#launcher = launcher;
    this.#lowering = new CudaLowering({
      ...{ device: this, launcher, streams, memory },
      modules: new KernelModules(driver, this.#builder, launcher),
      properties: this.facts,
      makeFloat32Product: (context) => parts.makeFloat32Product(context, driver, scratch, streams),
      loadCublasLt: () => parts.loadCublasLt(),
    });
  }

  /** Directs this thread's driver calls to this device. Every method here does so by itself. */
  makeCurrent(): void {
    if (currentContext === this.#context) return;
    this.#driver.check(this.#driver.functions.cuCtxSetCurrent(this.#context), 'cuCtxSetCurrent');
    currentContext = this.#context;
  }

  /** The stream that ops of this device are currently queued on. */
  get stream(): CudaStream {
    return this.#streams.current;
  }

  /** Creates another stream of this device, by default with the priority of its first one. It lives as long as the process. */
  createStream(options: { readonly priority?: StreamPriority } = {}): CudaStream {
    checkOptions('createStream', options, ['priority']);
    const { priority = 'ops' } = options;
    if (!Object.hasOwn(streamPriorities, priority))
      throw wrongArgument(
        'createStream',
        'priority',
        `one of ${Object.keys(streamPriorities).join(', ')}`,
        priority,
      );
    return this.#streams.create(priority);
  }

  /**
   * Runs `fn` with `stream` as the current one, and returns its result. What another stream writes must be waited for
   * (`stream.waitFor`); memory needs no such care: what is freed on one stream is not handed out again before the others are
   * done with it. Throws a DeviceError for another device's stream, a RooflineError for an async function.
   */
  onStream<T>(stream: CudaStream, fn: () => T): T {
    refuseAsync('onStream', fn);
    if (!this.#streams.has(stream)) throw new DeviceError(`onStream: the stream is none of ${this.label}'s.`);
    const before = this.#streams.current;
    this.#memory.useStream(stream);
    try {
      return refusePromise('onStream', fn());
    } finally {
      this.#memory.useStream(before);
    }
  }

  /** Creates a memory pool, whose segments are `rounded` by default; see `MemoryPool`. */
  createPool(options: { readonly segmentSize?: SegmentSize } = {}): MemoryPool {
    checkOptions('createPool', options, ['segmentSize']);
    const { segmentSize = 'rounded' } = options;
    if (!segmentSizes.includes(segmentSize))
      throw wrongArgument('createPool', 'segmentSize', `one of ${segmentSizes.join(', ')}`, segmentSize);
    return this.#memory.allocator.createPool(segmentSize);
  }

  /**
   * Runs `fn` with allocations from `pool`, and returns its result; what `fn` allocated goes back there when it is freed.
   * Throws a DeviceError for a pool that has been released or is another device's, a RooflineError for an async function.
   */
  withPool<T>(pool: MemoryPool, fn: () => T): T {
    refuseAsync('withPool', fn);
    if (!(pool instanceof MemoryPool)) {
      throw new DeviceError(`withPool: takes a pool of createPool(), not ${describeValue(pool)}.`);
    }
    return this.#memory.within(pool, () => refusePromise('withPool', fn()));
  }

  /**
   * Records that `stream` uses a buffer in a way that this package does not see, such as a call of another library, like
   * `torch.Tensor.record_stream`. Ops record what they use themselves.
   */
  recordStream(buffer: DeviceBuffer, stream: CudaStream): void {
    if (!(buffer instanceof Block))
      throw wrongArgument('recordStream', 'the buffer', "one of the device's", buffer);
    if (!this.#streams.has(stream))
      throw new DeviceError(`recordStream: the stream is none of ${this.label}'s.`);
    buffer.usedBy(stream);
  }

  /** Page-locked host memory for `CudaStream.copy`. Throws a DeviceError if the system gives no more. */
  allocatePinned(byteLength: number): PinnedMemory {
    this.makeCurrent();
    return new PinnedMemory(this.#driver, byteLength);
  }

  /** Writes a CUtensorMap, the 128 bytes of a kernel's TMA descriptor. Throws a ShapeError that names what is wrong. */
  encodeTensorMap(description: TensorMapDescription, to: HostMemory, byteOffset = 0): void {
    checkObject('encodeTensorMap', 'the description', description);
    if (!(to instanceof HostMemory)) throw wrongArgument('encodeTensorMap', 'its place', 'HostMemory', to);
    checkCount('encodeTensorMap', 'the offset', byteOffset);
    this.makeCurrent();
    this.#tensorMaps.encode(description, to, byteOffset);
  }

  /**
   * The address of memory that a kernel keeps from launch to launch: at least `byteLength` bytes of the current stream's own,
   * the same for the same `name` until more is asked for. It is zero at first, each launch must leave it as it found it, and
   * it is never freed.
   */
  scratch(name: string, byteLength: number): number {
    checkText('scratch', 'the name', name);
    checkCount('scratch', 'the number of bytes', byteLength);
    this.makeCurrent();
    return this.#scratch(name, byteLength);
  }

  allocate(byteLength: number): Block {
    return this.#memory.allocateStorage(byteLength);
  }

  /**
   * Allocates at `address`, a multiple of 512 inside free memory of the current pool. Throws a DeviceError where it is not
   * free.
   */
  allocateAt(address: number, byteLength: number): Block {
    const block = this.#memory.allocateStorageAt(address, byteLength);
    if (block) return block;
    throw new DeviceError(
      `allocateAt: ${byteLength} bytes at 0x${address.toString(16)} are not free in the current pool.`,
    );
  }

  free(buffer: Block): void {
    this.#memory.freeStorage(buffer);
  }

  /** Memory that no storage owns: workspaces, buffers of other libraries. Throws an OutOfMemoryError. */
  allocateBlock(byteLength: number): Block {
    checkCount('allocateBlock', 'the number of bytes', byteLength);
    return this.#memory.allocateBlock(byteLength);
  }

  freeBlock(block: Block): void {
    if (!(block instanceof Block))
      throw wrongArgument('freeBlock', 'the block', 'one of allocateBlock()', block);
    this.#memory.freeBlock(block);
  }

  /** Called with memory inside a block that holds nothing any more; where freed memory is poisoned, it is filled as well. */
  discard(address: number, byteLength: number): void {
    this.#memory.poison(address, byteLength);
  }

  /** Makes the current stream wait now for everything that freed memory depends on, because a capture cannot. */
  awaitFreedMemory(): void {
    this.#memory.allocator.endFences();
  }

  write(buffer: Block, byteOffset: number, bytes: Uint8Array): void {
    this.makeCurrent();
    if (this.#streams.areSeveral) buffer.usedBy(this.#streams.current);
    this.#memory.upload(buffer, byteOffset, bytes);
  }

  read(buffer: Block, byteOffset: number, bytes: Uint8Array): void {
    this.makeCurrent();
    this.#memory.download(buffer, byteOffset, bytes);
  }

  run<A>(op: Op<A>, inputs: readonly MemoryView[], outputs: readonly MemoryView[], attributes: A): void {
    this.makeCurrent();
    if (this.#streams.areSeveral) this.#noteUse(inputs, outputs);
    this.#lowering.run(op, inputs, outputs, attributes);
  }

  /**
   * Starts compiling kernels that will be launched soon, in threads of their own, and does not wait: the first launch of each
   * does. Those in the cache are skipped. A process that ends meanwhile waits for compilations under way, not for those not
   * started yet. Throws a RooflineError (code ARGUMENT) unless given a list of kernels, a DeviceError for a missing header,
   * and a LibraryNotFoundError without NVRTC; a kernel that does not compile throws when it is launched.
   */
  compileAhead(kernels: readonly CompilableKernel[]): void {
    checkKernels('compileAhead', kernels);
    this.#builder.beginFiles(kernels);
  }

  /** What captures ops as CUDA graphs of this device; internal. */
  get internals(): DeviceInternals {
    return {
      device: this,
      driver: this.#driver,
      launcher: this.#launcher,
      lowering: this.#lowering,
      builder: this.#builder,
    };
  }

  /** Records an event on the current stream. */
  recordEvent(options?: EventOptions): CudaEvent {
    return this.#streams.current.recordEvent(options);
  }

  /** Makes everything queued on other streams from now on wait for what is queued on the current one so far. */
  holdBackOtherStreams(): void {
    this.#streams.holdBackOthers();
  }

  /** Blocks until everything queued on any stream has run. */
  synchronize(): void {
    this.#streams.synchronize();
  }

  get allocatedBytes(): number {
    return this.#memory.allocator.statistics.allocatedBytes;
  }

  memoryStatistics(): MemoryStatistics {
    return this.#memory.statistics();
  }

  resetPeakMemory(): void {
    this.#memory.allocator.resetPeaks();
  }

  /** Gives cached memory back to the system, except that of pools from `createPool`. */
  emptyCache(): void {
    this.synchronize();
    this.#memory.allocator.emptyCache();
  }

  observeMemory(observer: MemoryObserver | null): MemoryObserver | null {
    const { allocator } = this.#memory;
    const before = allocator.observer;
    allocator.observer = observer;
    return before;
  }

  memorySegments(): MemorySegment[] {
    return this.#memory.allocator.segments();
  }

  properties(): Record<string, string | number> {
    return describeFacts(this.facts);
  }

  // Outputs too: a gradient may go to a buffer that was allocated for another stream.
  #noteUse(...operands: readonly (readonly MemoryView[])[]): void {
    const { current } = this.#streams;
    for (const views of operands) for (const { storage } of views) (storage.buffer as Block).usedBy(current);
  }
}
