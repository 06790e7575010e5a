import { DeviceError } from '../base/errors.ts';
import type { AllocationKind, MemoryObserver, MemorySegment } from '../base/memory-observer.ts';
import { Block, absorbNext, describeSegment, splitBlock } from './block.ts';
import { type CachedBlocks, MemoryPool, type QueueBlocks, type SegmentSize } from './memory-pool.ts';
import type { MemoryQueue } from './queue.ts';

/** Where an allocator gets memory from, in large segments. */
export interface SegmentSource {
  /** The address of new memory, or null if the device has no room. */
  reserve(bytes: number): number | null;
  /** Takes a segment back; everything queued on it has run by then. */
  release(address: number): void;
  /** Called with each block that may be handed out again to what `queue` runs from now on. */
  retired?(address: number, bytes: number, queue: MemoryQueue): void;
}

// The sizes are those of PyTorch's CUDACachingAllocator, so that memory compares with it like for like.
const mebibyte = 2 ** 20;
const granularity = 512;
const smallLimit = 1 * mebibyte;
const smallSegment = 2 * mebibyte;
const mediumLimit = 10 * mebibyte;
const mediumSegment = 20 * mebibyte;
const largeRounding = 2 * mebibyte;

/** Bytes, as `MemoryStatistics` counts them. */
export interface AllocatorStatistics {
  allocatedBytes: number;
  reservedBytes: number;
  peakAllocatedBytes: number;
  peakReservedBytes: number;
}

/**
 * A caching allocator for memory that queues of work use in order. A block belongs to the queue that it was allocated
 * for: freed, it may be handed out to that queue again at once, since whatever uses it next runs later. One that other
 * queues have used too (`Block.usedBy`) is fenced: it rests until its own queue finds nothing else to hand out, which
 * then waits, on the device, for the points that the others had reached when the block was freed. Best fit; blocks are
 * split, and merged with free neighbours.
 */
export class CachingAllocator {
  /** Called with what happens here, if there is one. */
  observer: MemoryObserver | null = null;
  readonly #source: SegmentSource;
  readonly #pools = new Set<MemoryPool>();
  readonly #defaultPool: MemoryPool;
  #current: QueueBlocks;
  readonly #statistics: AllocatorStatistics = {
    allocatedBytes: 0,
    reservedBytes: 0,
    peakAllocatedBytes: 0,
    peakReservedBytes: 0,
  };

  /** Allocates for `queue`, from the default pool, until another is selected. */
  constructor(source: SegmentSource, queue: MemoryQueue) {
    this.#source = source;
    this.#defaultPool = this.createPool();
    this.#current = this.#defaultPool.blocksOf(queue);
  }

  get statistics(): Readonly<AllocatorStatistics> {
    return this.#statistics;
  }

  /** Where blocks come from now. */
  get pool(): MemoryPool {
    return this.#current.pool;
  }

  get defaultPool(): MemoryPool {
    return this.#defaultPool;
  }

  createPool(segmentSize: SegmentSize = 'rounded'): MemoryPool {
    const pool = new MemoryPool(
      segmentSize,
      (released) => this.#giveBackSegments(released),
      (held, name) => this.#holdFree(held, name),
    );
    this.#pools.add(pool);
    return pool;
  }

  /** Allocates for `queue` from `pool` from now on. Throws a DeviceError for a pool that is released or not from here. */
  select(pool: MemoryPool, queue: MemoryQueue): void {
    if (pool.isReleased) throw new DeviceError('withPool: the pool is released; make another.');
    if (!this.#pools.has(pool)) throw new DeviceError('withPool: the pool belongs to another device.');
    this.#current = pool.blocksOf(queue);
  }

  /** Memory of at least `byteLength` bytes, aligned to 512; null if the device has no room, cache given back. */
  allocate(byteLength: number, kind: AllocationKind = 'storage'): Block | null {
    const size = blockBytes(byteLength);
    const isSmall = size <= smallLimit;
    const owner = this.#current;
    const cached = isSmall ? owner.small : owner.large;
    const block = this.#takeCached(owner, cached, size) ?? this.#newSegment(owner, size, isSmall);
    if (!block) return null;
    if (block.size - size >= (isSmall ? granularity : smallLimit + granularity)) {
      cached.free.add(splitBlock(block, size));
    }
    this.#handOut(block, byteLength, kind);
    return block;
  }

  /** The same at `address`, of what is free of the current pool for the current queue; null where it is not. */
  allocateAt(address: number, byteLength: number): Block | null {
    const size = blockBytes(byteLength);
    for (const { free } of [this.#current.small, this.#current.large]) {
      for (const block of free) {
        if (address < block.address || address + size > block.address + block.size) continue;
        free.remove(block);
        let own = block;
        if (address > block.address) {
          own = splitBlock(block, address - block.address);
          free.add(block);
        }
        if (own.size > size) free.add(splitBlock(own, size));
        this.#handOut(own, byteLength, 'storage');
        return own;
      }
    }
    return null;
  }

  #handOut(block: Block, byteLength: number, kind: AllocationKind, name: string | null = null): void {
    block.isFree = false;
    block.isLive = true;
    block.byteLength = byteLength;
    block.name = name;
    const statistics = this.#statistics;
    statistics.allocatedBytes += block.size;
    ownerOf(block).pool.allocatedBytes += block.size;
    if (statistics.allocatedBytes > statistics.peakAllocatedBytes) {
      statistics.peakAllocatedBytes = statistics.allocatedBytes;
    }
    this.observer?.allocated(block.address, byteLength, block.size, kind, name ?? undefined);
  }

  #holdFree(pool: MemoryPool, name: string): Block[] {
    const held: Block[] = [];
    for (const owner of pool.allBlocks()) {
      for (const cached of [owner.small, owner.large]) {
        this.#passFences(owner, cached);
        for (let block = cached.free.takeBest(0); block; block = cached.free.takeBest(0)) {
          this.#handOut(block, block.size, 'storage', name);
          held.push(block);
        }
      }
    }
    return held;
  }

  /** Takes a block back. Throws a DeviceError if it is free already. */
  free(block: Block): void {
    if (!block.isLive) {
      throw new DeviceError(`free: the block at 0x${block.address.toString(16)} is free already.`);
    }
    this.observer?.freed(block.address);
    block.isLive = false;
    this.#statistics.allocatedBytes -= block.size;
    ownerOf(block).pool.allocatedBytes -= block.size;
    const { users } = block;
    const owner = ownerOf(block);
    if (users === null) {
      this.#retire(block);
      return;
    }
    block.users = null;
    const { fenced } = block.isSmall ? owner.small : owner.large;
    fenced.push({ block, done: users.map((queue) => queue.recordEvent({ timing: false })) });
    if (owner.pool.isReleased) this.#giveBackSegments(owner.pool);
  }

  /** Gives every segment of the default pool without a live block back to the source. */
  emptyCache(): void {
    this.#giveBackSegments(this.#defaultPool);
  }

  /**
   * Makes all fenced blocks of the current queue free, which then waits for those that used them: for when it is to wait
   * for nothing, as under capture.
   */
  endFences(): void {
    for (const pool of this.#pools) {
      const owner = pool.blocksOf(this.#current.queue);
      for (const cached of [owner.small, owner.large]) this.#passFences(owner, cached);
    }
  }

  /** Every segment with its blocks, free ones included. */
  segments(): MemorySegment[] {
    return [...this.#pools].flatMap((pool) => [...pool.segments].map(describeSegment));
  }

  /** Starts the peaks over from what is held now. */
  resetPeaks(): void {
    this.#statistics.peakAllocatedBytes = this.#statistics.allocatedBytes;
    this.#statistics.peakReservedBytes = this.#statistics.reservedBytes;
  }

  #takeCached(owner: QueueBlocks, cached: CachedBlocks, size: number): Block | null {
    const block = cached.free.takeBest(size);
    if (block || cached.fenced.length === 0) return block;
    this.#passFences(owner, cached);
    return cached.free.takeBest(size);
  }

  /** Makes all fenced blocks free, their queue waiting for the others first. */
  #passFences({ queue }: QueueBlocks, cached: CachedBlocks): void {
    const { fenced } = cached;
    cached.fenced = [];
    for (const { block, done } of fenced) {
      for (const event of done) {
        queue.waitFor(event);
        event.dispose();
      }
      this.#retire(block);
    }
  }

  /** Puts a block among the free ones, merged with its free neighbours. */
  #retire(block: Block): void {
    const { previous, next } = block;
    const owner = ownerOf(block);
    this.#source.retired?.(block.address, block.size, owner.queue);
    const { free } = block.isSmall ? owner.small : owner.large;
    let merged = block;
    if (next?.isFree) {
      free.remove(next);
      absorbNext(merged, next);
    }
    if (previous?.isFree) {
      free.remove(previous);
      absorbNext(previous, merged);
      merged = previous;
    }
    merged.isFree = true;
    free.add(merged);
    if (owner.pool.isReleased) this.#giveBackSegments(owner.pool);
  }

  #newSegment(owner: QueueBlocks, size: number, isSmall: boolean): Block | null {
    const bytes = owner.pool.segmentSize === 'exact' ? size : segmentBytes(size);
    let address = this.#source.reserve(bytes);
    if (address === null) {
      this.emptyCache();
      address = this.#source.reserve(bytes);
    }
    if (address === null) return null;
    const statistics = this.#statistics;
    statistics.reservedBytes += bytes;
    statistics.peakReservedBytes = Math.max(statistics.peakReservedBytes, statistics.reservedBytes);
    owner.pool.reservedBytes += bytes;
    this.observer?.segmentReserved(address, bytes);
    const block = new Block(address, bytes, isSmall, owner);
    owner.pool.segments.add(block);
    return block;
  }

  #giveBackSegments(pool: MemoryPool): void {
    for (const owner of pool.allBlocks()) {
      for (const cached of [owner.small, owner.large]) {
        this.#passFences(owner, cached);
        for (const block of [...cached.free]) {
          if (!block.previous && !block.next) this.#giveBackSegment(pool, cached, block);
        }
      }
    }
    if (pool.isReleased && pool.segments.size === 0) this.#pools.delete(pool);
  }

  #giveBackSegment(pool: MemoryPool, { free }: CachedBlocks, block: Block): void {
    free.remove(block);
    this.#source.release(block.address);
    pool.segments.delete(block);
    pool.reservedBytes -= block.size;
    this.#statistics.reservedBytes -= block.size;
    this.observer?.segmentReleased(block.address, block.size);
  }
}

/** The size of a block for so many bytes; blocks begin at multiples of the smallest. */
export function blockBytes(byteLength: number): number {
  return Math.max(granularity, Math.ceil(byteLength / granularity) * granularity);
}

function segmentBytes(size: number): number {
  if (size <= smallLimit) return smallSegment;
  if (size < mediumLimit) return mediumSegment;
  return Math.ceil(size / largeRounding) * largeRounding;
}

/** All blocks of an allocator lie in pools. */
function ownerOf({ owner }: Block): QueueBlocks {
  return owner as QueueBlocks;
}
