import { checkOptions } from './base/check-options.ts';
import { checkCount, checkObject, checkText, describeValue, wrongArgument } from './base/check-value.ts';
import type { DeviceBuffer, MemoryStatistics } from './base/device-memory.ts';
import { DeviceError } from './base/errors.ts';
import { HostMemory } from './base/host/host-memory.ts';
import type { MemoryObserver, MemorySegment } from './base/memory-observer.ts';
import { refuseAsync, refusePromise } from './base/synchronous.ts';
import type { CudaEvent, EventOptions } from './driver/event.ts';
import { type CudaStream, type StreamPriority, streamPriorities } from './driver/stream.ts';
import type { GpuParts } from './gpu-parts.ts';
import type { CudaKernel, KernelSpec } from './kernel.ts';
import type { TensorMapDescription } from './launch/tensor-map.ts';
import { Block } from './memory/block.ts';
import { GpuMemory } from './memory/gpu-memory.ts';
import { MemoryPool, type SegmentSize, segmentSizes } from './memory/memory-pool.ts';
import { PinnedMemory } from './memory/pinned-memory.ts';
import { type CompilableKernel, checkKernels } from './nvrtc/compile-kernels.ts';
import { type DeviceFacts, describeFacts } from './properties.ts';

/**
 * An NVIDIA GPU; `openGpu` opens one. Work is queued on its current stream and takes memory from its current pool;
 * `onStream` and `withPool` change them.
 */
export class Gpu {
  readonly index: number;
  /** Such as `cuda:0`. */
  readonly label: string;
  /** The marketing name, such as `NVIDIA H200`. */
  readonly name: string;
  readonly facts: DeviceFacts;
  /** What it is made of, for packages that compose a device of their own: its callers know what they give. */
  readonly parts: GpuParts;

  /** Shares `parts` with the other objects that were made of them. */
  constructor(parts: GpuParts) {
    const { index, label, facts } = parts;
    this.index = index;
    this.label = label;
    this.name = facts.name;
    this.facts = facts;
    this.parts = parts;
  }

  /** Directs this thread's driver calls to this GPU. Every method here does so itself. */
  makeCurrent(): void {
    this.parts.makeCurrent();
  }

  /**
   * A kernel of a `.cu` file, ready to be launched on the current stream: compiled for this GPU, or taken from the cache on
   * disk, when it is asked for first. The same object for specs that say the same. Throws a KernelCompileError for a kernel
   * that does not compile, a DeviceError for a header, a name or a letter of a parameter that is none, a
   * LibraryNotFoundError without NVRTC, and a RooflineError (code ARGUMENT) for what is no spec.
   */
  kernel(spec: KernelSpec): CudaKernel {
    checkKernels('kernel', [spec]);
    checkText('kernel', 'the name', spec.name);
    checkText('kernel', 'the parameters', spec.parameters);
    this.makeCurrent();
    return this.parts.modules.kernel(spec);
  }

  /** So many bytes, which hold nothing in particular yet. Throws an OutOfMemoryError. */
  allocateMemory(byteLength: number): GpuMemory {
    checkCount('allocateMemory', 'the number of bytes', byteLength);
    return new GpuMemory(this.parts, byteLength);
  }

  /** Memory that holds the bytes of a typed array, which may be changed when this returns. Throws an OutOfMemoryError. */
  upload(values: ArrayBufferView): GpuMemory {
    if (!ArrayBuffer.isView(values)) throw wrongArgument('upload', 'the values', 'a typed array', values);
    return new GpuMemory(this.parts, values.byteLength).write(values);
  }

  /** The stream that work is queued on now. */
  get stream(): CudaStream {
    return this.parts.streams.current;
  }

  /** A further stream of this GPU, as urgent as its first one if no priority is given. It lives as long as the process. */
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
    return this.parts.streams.create(priority);
  }

  /**
   * Runs `fn` with `stream` as the current one, and gives back what it returns. What another stream wrote must be
   * waited for (`stream.waitFor`); memory is safe without: what is freed on one stream is not handed out again before
   * the others have done with it. Throws a DeviceError for another device's stream, a RooflineError for an async function.
   */
  onStream<T>(stream: CudaStream, fn: () => T): T {
    refuseAsync('onStream', fn);
    if (!this.parts.streams.has(stream))
      throw new DeviceError(`onStream: the stream is none of ${this.label}'s.`);
    const before = this.parts.streams.current;
    this.parts.memory.useStream(stream);
    try {
      return refusePromise('onStream', fn());
    } finally {
      this.parts.memory.useStream(before);
    }
  }

  /** A memory pool of its own, whose segments are `rounded` if nothing is said; see `MemoryPool`. */
  createPool(options: { readonly segmentSize?: SegmentSize } = {}): MemoryPool {
    checkOptions('createPool', options, ['segmentSize']);
    const { segmentSize = 'rounded' } = options;
    if (!segmentSizes.includes(segmentSize))
      throw wrongArgument('createPool', 'segmentSize', `one of ${segmentSizes.join(', ')}`, segmentSize);
    return this.parts.memory.allocator.createPool(segmentSize);
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
    return this.parts.memory.within(pool, () => refusePromise('withPool', fn()));
  }

  /**
   * Notes that `stream` works on a buffer in a way that this package does not see, a call of another library say, as
   * `torch.Tensor.record_stream`. Throws a RooflineError for what is no block of memory, a DeviceError for a stream of another GPU.
   */
  recordStream(buffer: DeviceBuffer, stream: CudaStream): void {
    if (!(buffer instanceof Block))
      throw wrongArgument('recordStream', 'the buffer', "one of the device's", buffer);
    if (!this.parts.streams.has(stream))
      throw new DeviceError(`recordStream: the stream is none of ${this.label}'s.`);
    buffer.usedBy(stream);
  }

  /** Page-locked host memory for `CudaStream.copy`. Throws a DeviceError if the system gives no more. */
  allocatePinned(byteLength: number): PinnedMemory {
    this.makeCurrent();
    return new PinnedMemory(this.parts.driver, byteLength);
  }

  /** Writes a CUtensorMap, the 128 bytes of a kernel's TMA descriptor. Throws a DeviceError for what TMA cannot describe. */
  encodeTensorMap(description: TensorMapDescription, to: HostMemory, byteOffset = 0): void {
    checkObject('encodeTensorMap', 'the description', description);
    if (!(to instanceof HostMemory)) throw wrongArgument('encodeTensorMap', 'its place', 'HostMemory', to);
    checkCount('encodeTensorMap', 'the offset', byteOffset);
    this.makeCurrent();
    this.parts.tensorMaps.encode(description, to, byteOffset);
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
    return this.parts.scratch(name, byteLength);
  }

  /** Memory of a workspace, or for another library, until `freeBlock`; it counts as no live storage. Throws an OutOfMemoryError. */
  allocateBlock(byteLength: number): Block {
    checkCount('allocateBlock', 'the number of bytes', byteLength);
    return this.parts.memory.allocateBlock(byteLength);
  }

  freeBlock(block: Block): void {
    if (!(block instanceof Block))
      throw wrongArgument('freeBlock', 'the block', 'one of allocateBlock()', block);
    this.parts.memory.freeBlock(block);
  }

  /**
   * Begins to compile kernels that will be launched soon in threads of their own, and does not wait: the first launch of each
   * does. Those that the cache has are left. A process that ends meanwhile waits for the kernels that are under way, not for
   * those that are still to be begun. Throws a RooflineError (code ARGUMENT) for what is no list of kernels, a DeviceError for
   * a header that is missing, and a LibraryNotFoundError without NVRTC; what does not compile, its launch tells.
   */
  compileAhead(kernels: readonly CompilableKernel[]): void {
    checkKernels('compileAhead', kernels);
    this.parts.builder.beginFiles(kernels);
  }

  /** Records an event on the current stream. */
  recordEvent(options?: EventOptions): CudaEvent {
    return this.parts.streams.current.recordEvent(options);
  }

  /** Blocks until everything queued on any stream has run. */
  synchronize(): void {
    this.parts.streams.synchronize();
  }

  get allocatedBytes(): number {
    return this.parts.memory.allocator.statistics.allocatedBytes;
  }

  memoryStatistics(): MemoryStatistics {
    return this.parts.memory.statistics();
  }

  resetPeakMemory(): void {
    this.parts.memory.allocator.resetPeaks();
  }

  /** Gives cached memory back to the system, but for that of pools from `createPool`. */
  emptyCache(): void {
    this.synchronize();
    this.parts.memory.allocator.emptyCache();
  }

  observeMemory(observer: MemoryObserver | null): MemoryObserver | null {
    const { allocator } = this.parts.memory;
    const before = allocator.observer;
    allocator.observer = observer;
    return before;
  }

  memorySegments(): MemorySegment[] {
    return this.parts.memory.allocator.segments();
  }

  properties(): Record<string, string | number> {
    return describeFacts(this.facts);
  }
}
