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

/** The context that this thread's driver calls go to. */
let currentContext = 0;

/** The parts of a device with which ops are captured as a graph. */
export interface DeviceInternals {
  readonly device: CudaDevice;
  readonly driver: CudaDriver;
  readonly launcher: Launcher;
  readonly lowering: CudaLowering;
  readonly builder: KernelBuilder;
}

/**
 * An NVIDIA GPU. Open it with `device('cuda:0')`; `cudaDevice` of `@roofline/tensor-core/native` gives this type. Ops
 * are queued on its current stream and take memory from its current pool; `onStream` and `withPool` change them.
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

  /** Directs this thread's driver calls to this device. Every method here does so itself. */
  makeCurrent(): void {
    if (currentContext === this.#context) return;
    this.#driver.check(this.#driver.functions.cuCtxSetCurrent(this.#context), 'cuCtxSetCurrent');
    currentContext = this.#context;
  }

  /** The stream that ops of this device are queued on now. */
  get stream(): CudaStream {
    return this.#streams.current;
  }

  /** A further stream of this device, as urgent as its first one if no priority is given. It lives as long as the process. */
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
   * Runs `fn` with `stream` as the current one, and gives back what it returns. What another stream wrote must be
   * waited for (`stream.waitFor`); memory is safe without: what is freed on one stream is not handed out again before
   * the others have done with it. Throws a DeviceError for another device's stream, a RooflineError for an async function.
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

  /** A memory pool of its own, whose segments are `rounded` if nothing is said; see `MemoryPool`. */
  createPool(options: { readonly segmentSize?: SegmentSize } = {}): MemoryPool {
    checkOptions('createPool', options, ['segmentSize']);
    const { segmentSize = 'rounded' } = options;
    if (!segmentSizes.includes(segmentSize))
      throw wrongArgument('createPool', 'segmentSize', `one of ${segmentSizes.join(', ')}`, segmentSize);
    return this.#memory.allocator.createPool(segmentSize);
  }

  /**
   * Runs `fn` with allocations from `pool`, and gives back what it returns; what `fn` allocated goes back there when
   * it is freed. Throws a DeviceError for a pool that is released or another device's, a RooflineError for
   * an async function.
   */
  withPool<T>(pool: MemoryPool, fn: () => T): T {
    refuseAsync('withPool', fn);
    if (!(pool instanceof MemoryPool)) {
      throw new DeviceError(`withPool: takes a pool of createPool(), not ${describeValue(pool)}.`);
    }
    return this.#memory.within(pool, () => refusePromise('withPool', fn()));
  }

  /**
   * Notes that `stream` works on a buffer in a way that this package does not see, a call of another library say, as
   * `torch.Tensor.record_stream`. Ops note what they use themselves.
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
   * Memory that a kernel keeps from launch to launch, which it must leave as it found it, and zeroed when it is handed out
   * first: at least `byteLength` bytes of the current stream's own, the same for the same `name` until more is asked for.
   * Gives its address; it is never freed.
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

  /** The same at a multiple of 512, inside what is free of the current pool. Throws a DeviceError where it is not free. */
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

  /** Told of memory inside a block that holds nothing any more: tests have it filled, as freed blocks are. */
  discard(address: number, byteLength: number): void {
    this.#memory.poison(address, byteLength);
  }

  /** Lets the current stream wait now for what it would have to wait for to get freed memory again: a capture cannot. */
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
   * Begins to compile kernels that will be launched soon in threads of their own, and does not wait: the first launch of each
   * does. Those that the cache has are left. A process that ends meanwhile waits for the kernels that are under way, not for
   * those that are still to be begun. Throws a RooflineError (code ARGUMENT) for what is no list of kernels, a DeviceError for
   * a header that is missing, and a LibraryNotFoundError without NVRTC; what does not compile, its launch tells.
   */
  compileAhead(kernels: readonly CompilableKernel[]): void {
    checkKernels('compileAhead', kernels);
    this.#builder.beginFiles(kernels);
  }

  /** What captures ops as graphs of this device; internal. */
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

  /** Lets what is queued on any other stream from now on wait for what the current one has been given so far. */
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

  /** Gives cached memory back to the system, but for that of pools from `createPool`. */
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
