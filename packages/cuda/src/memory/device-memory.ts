import { OutOfMemoryError } from '../base/errors.ts';
import type { AllocationKind } from '../base/memory-observer.ts';
import type { MemoryStatistics } from '../base/device-memory.ts';
import { type CudaDriver, outOfMemory } from '../driver/driver.ts';
import { CudaStream, type StreamParts, type Streams } from '../driver/stream.ts';
import { CachingAllocator } from './allocator.ts';
import type { Block } from './block.ts';
import type { MemoryPool } from './memory-pool.ts';
import type { MemoryQueue } from './queue.ts';
import { StagingBuffer } from './staging.ts';

/** What memory that is handed back is filled with, where that is asked for: NaN in every floating-point dtype. */
const poison = 0xff;

/** What a device's memory stands on. */
export interface MemoryParts extends StreamParts {
  readonly streams: Streams;
  /** What errors call the device. */
  readonly label: string;
  /** Fills blocks that are handed back, so that reading memory after its end shows. */
  readonly poisonsFreedMemory: boolean;
}

/** The memory of one device: what is handed out for the current stream, from the current pool, and copies to it. */
export class DeviceMemory {
  readonly allocator: CachingAllocator;
  readonly #parts: MemoryParts;
  readonly #driver: CudaDriver;
  readonly #streams: Streams;
  readonly #staging = new WeakMap<CudaStream, StagingBuffer>();
  #liveStorages = 0;
  #zeroing: CudaStream | null = null;

  constructor(parts: MemoryParts) {
    this.#parts = parts;
    this.#driver = parts.driver;
    this.#streams = parts.streams;
    const { functions } = parts.driver;
    // Not checked: a kernel's failure, which every call gives from then on, is for calls that ask for something to tell.
    const retired = (address: number, bytes: number, queue: MemoryQueue) => {
      parts.makeCurrent();
      functions.cuMemsetD8Async(address, poison, bytes, (queue as CudaStream).handle);
    };
    const source = {
      reserve: (bytes: number) => this.#reserve(bytes),
      release: (address: number) => this.#release(address),
      ...(parts.poisonsFreedMemory ? { retired } : {}),
    };
    this.allocator = new CachingAllocator(source, parts.streams.current);
  }

  /** Memory that users hold, counted as a live storage. Throws an OutOfMemoryError. */
  allocateStorage(byteLength: number): Block {
    const block = this.#take(byteLength, 'storage');
    this.#liveStorages++;
    return block;
  }

  /** The same at an address of the current pool; null where that is not free. */
  allocateStorageAt(address: number, byteLength: number): Block | null {
    const block = this.allocator.allocateAt(address, byteLength);
    if (block) this.#liveStorages++;
    return block;
  }

  freeStorage(block: Block): void {
    this.allocator.free(block);
    this.#liveStorages--;
  }

  /** Memory that no storage owns: workspaces, buffers of other libraries. Throws an OutOfMemoryError. */
  allocateBlock(byteLength: number): Block {
    return this.#take(byteLength, 'workspace');
  }

  /** Fills a part of a block that is about to be used for something else, where freed memory is filled. */
  poison(address: number, byteLength: number): void {
    if (this.#parts.poisonsFreedMemory) this.#streams.current.fill(address, poison, byteLength);
  }

  freeBlock(block: Block): void {
    this.allocator.free(block);
  }

  /**
   * The address of zeroed memory that is never freed, from the default pool whatever the current one. A stream of its own
   * zeroes it at once, memory that no other stream has used: the current one may be under capture, for a graph that is never
   * launched.
   */
  allocatePermanent(byteLength: number): number {
    this.#zeroing ??= new CudaStream(this.#parts);
    const before = this.allocator.pool;
    this.allocator.select(this.allocator.defaultPool, this.#zeroing);
    try {
      const { address } = this.allocateBlock(byteLength);
      this.#zeroing.fill(address, 0, byteLength);
      this.#zeroing.synchronize();
      return address;
    } finally {
      this.allocator.select(before, this.#streams.current);
    }
  }

  /** Runs `fn` with allocations from `pool`. */
  within<T>(pool: MemoryPool, fn: () => T): T {
    const before = this.allocator.pool;
    this.allocator.select(pool, this.#streams.current);
    pool.entered++;
    try {
      return fn();
    } finally {
      pool.entered--;
      this.allocator.select(before, this.#streams.current);
    }
  }

  /** Makes `stream` the one that work is queued on, and memory handed out for. */
  useStream(stream: CudaStream): void {
    this.#streams.current = stream;
    this.allocator.select(this.allocator.pool, stream);
  }

  upload(block: Block, byteOffset: number, bytes: Uint8Array): void {
    this.#stagingBuffer().upload(block.address + byteOffset, bytes);
  }

  download(block: Block, byteOffset: number, bytes: Uint8Array): void {
    this.#stagingBuffer().download(block.address + byteOffset, bytes);
  }

  statistics(): MemoryStatistics {
    return { ...this.allocator.statistics, liveStorages: this.#liveStorages, ...this.#memoryInfo() };
  }

  #take(byteLength: number, kind: AllocationKind): Block {
    const block = this.allocator.allocate(byteLength, kind);
    if (block) return block;
    throw new OutOfMemoryError({
      device: this.#parts.label,
      requestedBytes: byteLength,
      heldBytes: this.allocator.statistics.reservedBytes,
      freeBytes: this.#memoryInfo().freeBytes,
    });
  }

  #stagingBuffer(): StagingBuffer {
    const stream = this.#streams.current;
    let staging = this.#staging.get(stream);
    if (!staging) this.#staging.set(stream, (staging = new StagingBuffer(this.#driver, stream)));
    return staging;
  }

  #reserve(bytes: number): number | null {
    this.#parts.makeCurrent();
    const { functions, result } = this.#driver;
    const status = functions.cuMemAlloc(result.address, bytes);
    if (status === outOfMemory) return null;
    this.#driver.check(status, 'cuMemAlloc');
    return result.readUint64(0);
  }

  // cuMemFree waits for the device, so nothing queued can still use the segment.
  #release(address: number): void {
    this.#parts.makeCurrent();
    this.#driver.check(this.#driver.functions.cuMemFree(address), 'cuMemFree');
  }

  #memoryInfo(): { freeBytes: number; totalBytes: number } {
    this.#parts.makeCurrent();
    const { functions, result } = this.#driver;
    this.#driver.check(functions.cuMemGetInfo(result.address, result.address + 8), 'cuMemGetInfo');
    return { freeBytes: result.readUint64(0), totalBytes: result.readUint64(8) };
  }
}
