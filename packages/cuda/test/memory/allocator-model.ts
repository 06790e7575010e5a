import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';
import type { MemorySegment } from '../../src/base/memory-observer.ts';

const mebibyte = 2 ** 20;

/** A block of the model; `state` is what became of it, and `since` when that was. */
export interface ModelBlock {
  readonly address: number;
  size: number;
  byteLength: number;
  state: 'live' | 'free' | 'fenced';
  since: number;
  users: Set<number>;
}

interface ModelSegment {
  readonly address: number;
  readonly bytes: number;
  readonly isSmall: boolean;
  readonly queue: number;
  readonly pool: number;
  blocks: ModelBlock[];
}

/**
 * What CachingAllocator promises, by lists and searches: the smallest free block of the queue and pool that is large
 * enough, the latest freed among equals; else the fences are passed; else a new segment.
 */
export class AllocatorModel {
  segments: ModelSegment[] = [];
  allocatedBytes = 0;
  peakAllocatedBytes = 0;
  peakReservedBytes = 0;
  #clock = 0;

  get reservedBytes(): number {
    return this.segments.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** `addresses` gives the place of a new segment, or null where there is none. */
  allocate(byteLength: number, queue: number, pool: number, reserve: (bytes: number) => number | null) {
    const size = Math.max(512, Math.ceil(byteLength / 512) * 512);
    const isSmall = size <= mebibyte;
    const mine = () =>
      this.segments.filter(
        (segment) => segment.queue === queue && segment.pool === pool && segment.isSmall === isSmall,
      );
    let found = this.#best(mine(), size);
    if (!found) {
      this.#passFences(mine());
      found = this.#best(mine(), size);
    }
    if (!found) {
      const bytes = isSmall
        ? 2 * mebibyte
        : size < 10 * mebibyte
          ? 20 * mebibyte
          : Math.ceil(size / (2 * mebibyte)) * 2 * mebibyte;
      const address = reserve(bytes);
      if (address === null) return null;
      const block = this.#newBlock(address, bytes, 'free');
      const segment = { address, bytes, isSmall, queue, pool, blocks: [block] };
      this.segments.push(segment);
      this.peakReservedBytes = Math.max(this.peakReservedBytes, this.reservedBytes);
      found = { segment, block };
    }
    const { segment, block } = found;
    const rest = block.size - size;
    if (rest >= (isSmall ? 512 : mebibyte + 512)) {
      block.size = size;
      segment.blocks.splice(
        segment.blocks.indexOf(block) + 1,
        0,
        this.#newBlock(block.address + size, rest, 'free'),
      );
    }
    Object.assign(block, { state: 'live', byteLength, users: new Set() });
    this.allocatedBytes += block.size;
    this.peakAllocatedBytes = Math.max(this.peakAllocatedBytes, this.allocatedBytes);
    return block;
  }

  use(block: ModelBlock, queue: number): void {
    if (this.#segmentOf(block).queue !== queue) block.users.add(queue);
  }

  free(block: ModelBlock): void {
    this.allocatedBytes -= block.size;
    if (block.users.size > 0) Object.assign(block, { state: 'fenced', since: ++this.#clock });
    else this.#retire(block);
  }

  /** Gives back what is wholly free in `pool`; the addresses of these segments. */
  emptyCache(pool: number): number[] {
    this.#passFences(this.segments.filter((segment) => segment.pool === pool));
    const gone = this.segments.filter(
      ({ pool: own, blocks }) => own === pool && blocks.length === 1 && blocks[0]!.state === 'free',
    );
    this.segments = this.segments.filter((segment) => !gone.includes(segment));
    return gone.map(({ address }) => address);
  }

  /** Throws unless `described` is what the model holds, and all blocks lie without gaps, free neighbours merged. */
  expectSame(described: readonly MemorySegment[]): void {
    const sorted = [...described].sort((a, b) => a.address - b.address);
    const expected = [...this.segments]
      .sort((a, b) => a.address - b.address)
      .map(({ address, bytes, blocks }) => ({
        address,
        bytes,
        blocks: blocks.map(({ address, size, state, byteLength }) => ({
          address,
          size,
          requestedBytes: state === 'live' ? byteLength : null,
          allocatedBytes: state === 'live' ? size : 0,
        })),
      }));
    // vitest's own comparison is too slow to be made at every step.
    if (!isDeepStrictEqual(sorted, expected)) expect(sorted).toEqual(expected);
  }

  #newBlock(address: number, size: number, state: ModelBlock['state']): ModelBlock {
    return { address, size, byteLength: 0, state, since: ++this.#clock, users: new Set() };
  }

  #best(segments: readonly ModelSegment[], size: number) {
    let best: { segment: ModelSegment; block: ModelBlock } | null = null;
    for (const segment of segments) {
      for (const block of segment.blocks) {
        if (block.state !== 'free' || block.size < size) continue;
        const isBetter =
          !best ||
          block.size < best.block.size ||
          (block.size === best.block.size && block.since > best.block.since);
        if (isBetter) best = { segment, block };
      }
    }
    return best;
  }

  #passFences(segments: readonly ModelSegment[]): void {
    segments
      .flatMap(({ blocks }) => blocks.filter(({ state }) => state === 'fenced'))
      .sort((a, b) => a.since - b.since)
      .forEach((block) => this.#retire(block));
  }

  #retire(block: ModelBlock): void {
    const segment = this.#segmentOf(block);
    Object.assign(block, { state: 'free', since: ++this.#clock });
    const at = segment.blocks.indexOf(block);
    const next = segment.blocks[at + 1];
    if (next?.state === 'free') {
      block.size += next.size;
      segment.blocks.splice(at + 1, 1);
    }
    const previous = segment.blocks[at - 1];
    if (previous?.state === 'free') {
      previous.size += block.size;
      previous.since = block.since;
      segment.blocks.splice(at, 1);
    }
  }

  #segmentOf(block: ModelBlock): ModelSegment {
    return this.segments.find(({ blocks }) => blocks.includes(block))!;
  }
}
