import type { DeviceBuffer } from '../../device.ts';
import { DeviceError } from '../../../errors.ts';
import type { AllocationKind, MemoryObserver, MemorySegment } from '../../../memory/observer.ts';
import { FreeBlocks } from './free-blocks.ts';

/** Where an allocator gets memory from, in large segments. */
export interface SegmentSource {
  /** The address of new memory, or null if the device has no room. */
  reserve(bytes: number): number | null;
  /** Takes a segment back; everything queued on it has run by then. */
  release(address: number): void;
}

// The sizes are those of PyTorch's CUDACachingAllocator, so that memory compares with it like for like.
const mebibyte = 2 ** 20;
const granularity = 512;
const smallLimit = 1 * mebibyte;
const smallSegment = 2 * mebibyte;
const mediumLimit = 10 * mebibyte;
const mediumSegment = 20 * mebibyte;
const largeRounding = 2 * mebibyte;

/** A piece of a segment: handed out, or free. Pieces of one segment are linked in the order of their addresses. */
export class Block implements DeviceBuffer {
  byteLength = 0;
  readonly address: number;
  /** Bytes, at least `byteLength`; a multiple of 512. */
  size: number;
  isFree = false;
  readonly isSmall: boolean;
  previous: Block | null = null;
  next: Block | null = null;
  /** Neighbours among the free blocks of one size. */
  freeAbove: Block | null = null;
  freeBelow: Block | null = null;

  constructor(address: number, size: number, isSmall: boolean) {
    this.address = address;
    this.size = size;
    this.isSmall = isSmall;
  }
}

/** Bytes, as `MemoryStatistics` counts them. */
export interface AllocatorStatistics {
  allocatedBytes: number;
  reservedBytes: number;
  peakAllocatedBytes: number;
  peakReservedBytes: number;
}

/**
 * A caching allocator for memory that one stream uses in order: a freed block may be handed out again at once,
 * since whatever uses it next runs later. Best fit; blocks are split, and merged with free neighbours.
 */
export class CachingAllocator {
  /** Told of what happens here, if there is one. */
  observer: MemoryObserver | null = null;
  readonly #source: SegmentSource;
  readonly #small = new FreeBlocks();
  readonly #large = new FreeBlocks();
  /** The first block of each segment: splits and merges keep it. */
  readonly #segments = new Set<Block>();
  readonly #statistics: AllocatorStatistics = {
    allocatedBytes: 0,
    reservedBytes: 0,
    peakAllocatedBytes: 0,
    peakReservedBytes: 0,
  };

  constructor(source: SegmentSource) {
    this.#source = source;
  }

  get statistics(): Readonly<AllocatorStatistics> {
    return this.#statistics;
  }

  /** Memory of at least `byteLength` bytes, aligned to 512; null if the device has no room, cache given back. */
  allocate(byteLength: number, kind: AllocationKind = 'storage'): Block | null {
    const size = Math.max(granularity, Math.ceil(byteLength / granularity) * granularity);
    const isSmall = size <= smallLimit;
    const pool = isSmall ? this.#small : this.#large;
    const block = pool.takeBest(size) ?? this.#newSegment(size, isSmall);
    if (!block) return null;
    if (block.size - size >= (isSmall ? granularity : smallLimit + granularity)) pool.add(split(block, size));
    block.isFree = false;
    block.byteLength = byteLength;
    const statistics = this.#statistics;
    statistics.allocatedBytes += block.size;
    if (statistics.allocatedBytes > statistics.peakAllocatedBytes) {
      statistics.peakAllocatedBytes = statistics.allocatedBytes;
    }
    this.observer?.allocated(block.address, byteLength, block.size, kind);
    return block;
  }

  /** Takes a block back. Throws a DeviceError if it is free already. */
  free(block: Block): void {
    if (block.isFree)
      throw new DeviceError(`free: the block at 0x${block.address.toString(16)} is free already.`);
    this.observer?.freed(block.address);
    this.#statistics.allocatedBytes -= block.size;
    const pool = block.isSmall ? this.#small : this.#large;
    let merged = block;
    const { previous, next } = block;
    if (next?.isFree) {
      pool.remove(next);
      absorbNext(merged, next);
    }
    if (previous?.isFree) {
      pool.remove(previous);
      absorbNext(previous, merged);
      merged = previous;
    }
    block.isFree = true;
    merged.isFree = true;
    pool.add(merged);
  }

  /** Gives every segment without a live block back to the source. */
  emptyCache(): void {
    for (const pool of [this.#small, this.#large]) {
      for (const block of [...pool]) {
        if (block.previous || block.next) continue;
        pool.remove(block);
        this.#source.release(block.address);
        this.#segments.delete(block);
        this.#statistics.reservedBytes -= block.size;
        this.observer?.segmentReleased(block.address, block.size);
      }
    }
  }

  /** Every segment with its blocks, free ones included. */
  segments(): MemorySegment[] {
    return [...this.#segments].map(describeSegment);
  }

  /** Starts the peaks over from what is held now. */
  resetPeaks(): void {
    this.#statistics.peakAllocatedBytes = this.#statistics.allocatedBytes;
    this.#statistics.peakReservedBytes = this.#statistics.reservedBytes;
  }

  #newSegment(size: number, isSmall: boolean): Block | null {
    const bytes = segmentBytes(size);
    let address = this.#source.reserve(bytes);
    if (address === null) {
      this.emptyCache();
      address = this.#source.reserve(bytes);
    }
    if (address === null) return null;
    const statistics = this.#statistics;
    statistics.reservedBytes += bytes;
    statistics.peakReservedBytes = Math.max(statistics.peakReservedBytes, statistics.reservedBytes);
    this.observer?.segmentReserved(address, bytes);
    const block = new Block(address, bytes, isSmall);
    this.#segments.add(block);
    return block;
  }
}

function describeSegment(first: Block): MemorySegment {
  const blocks = [];
  let bytes = 0;
  for (let block: Block | null = first; block; block = block.next) {
    const { address, size, isFree, byteLength } = block;
    bytes += size;
    blocks.push({
      address,
      size,
      requestedBytes: isFree ? null : byteLength,
      allocatedBytes: isFree ? 0 : size,
    });
  }
  return { address: first.address, bytes, blocks };
}

function segmentBytes(size: number): number {
  if (size <= smallLimit) return smallSegment;
  if (size < mediumLimit) return mediumSegment;
  return Math.ceil(size / largeRounding) * largeRounding;
}

/** Cuts `block` down to `size`; returns the rest, which is free. */
function split(block: Block, size: number): Block {
  const rest = new Block(block.address + size, block.size - size, block.isSmall);
  block.size = size;
  rest.isFree = true;
  rest.previous = block;
  rest.next = block.next;
  if (rest.next) rest.next.previous = rest;
  block.next = rest;
  return rest;
}

function absorbNext(block: Block, next: Block): void {
  block.size += next.size;
  block.next = next.next;
  if (block.next) block.next.previous = block;
}
