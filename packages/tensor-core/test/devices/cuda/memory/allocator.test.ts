import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CachingAllocator } from '../../../../src/devices/cuda/memory/allocator.ts';
import type { Block } from '../../../../src/devices/cuda/memory/block.ts';

const mebibyte = 2 ** 20;

/** A device of `capacity` bytes that never hands out overlapping segments. */
class FakeMemory {
  readonly segments = new Map<number, number>();
  readonly #capacity: number;
  #next = 2 ** 40;

  constructor(capacity = Infinity) {
    this.#capacity = capacity;
  }

  get held(): number {
    return [...this.segments.values()].reduce((sum, bytes) => sum + bytes, 0);
  }

  reserve(bytes: number): number | null {
    if (this.held + bytes > this.#capacity) return null;
    const address = this.#next;
    this.#next += bytes + mebibyte;
    this.segments.set(address, bytes);
    return address;
  }

  release(address: number): void {
    expect(this.segments.delete(address)).toBe(true);
  }
}

const queue = () => ({ recordEvent: () => ({ dispose: () => undefined }), waitFor: () => undefined });

function make(capacity?: number) {
  const memory = new FakeMemory(capacity);
  return { memory, allocator: new CachingAllocator(memory, queue()) };
}

describe('CachingAllocator', () => {
  it('rounds to 512 bytes, and takes segments of 2 MiB, 20 MiB or whole MiB pairs', () => {
    const sizes = (bytes: number) => {
      const { memory, allocator } = make();
      return [allocator.allocate(bytes)!.size, memory.held];
    };
    expect(sizes(0)).toEqual([512, 2 * mebibyte]);
    expect(sizes(513)).toEqual([1024, 2 * mebibyte]);
    expect(sizes(mebibyte)).toEqual([mebibyte, 2 * mebibyte]);
    expect(sizes(mebibyte + 1)).toEqual([mebibyte + 512, 20 * mebibyte]);
    expect(sizes(10 * mebibyte)).toEqual([10 * mebibyte, 10 * mebibyte]);
    expect(sizes(11 * mebibyte)).toEqual([12 * mebibyte, 12 * mebibyte]);
  });

  it('hands the same block out again', () => {
    const { allocator } = make();
    const first = allocator.allocate(5000)!;
    allocator.free(first);
    expect(allocator.allocate(5000)!.address).toBe(first.address);
  });

  it('takes the smallest free block that is large enough', () => {
    const { allocator } = make();
    const [small, , large] = [1024, 512, 4096, 512].map((bytes) => allocator.allocate(bytes)!);
    allocator.free(large!);
    allocator.free(small!);
    expect(allocator.allocate(800)!.address).toBe(small!.address);
  });

  it('merges free neighbours, in any order of freeing', () => {
    for (const order of [
      [0, 1, 2],
      [0, 2, 1],
      [1, 0, 2],
      [2, 1, 0],
    ]) {
      const { allocator, memory } = make();
      const blocks = [0, 1, 2].map(() => allocator.allocate(2 ** 19)!);
      for (const i of order) allocator.free(blocks[i]!);
      expect(allocator.allocate(mebibyte)).not.toBeNull();
      expect(memory.segments.size).toBe(1);
    }
  });

  it('gives cached segments back before it gives up', () => {
    const { allocator } = make(64 * mebibyte);
    const block = allocator.allocate(40 * mebibyte)!;
    expect(allocator.allocate(40 * mebibyte)).toBeNull();
    allocator.free(block);
    expect(allocator.allocate(60 * mebibyte)).not.toBeNull();
    expect(allocator.statistics.reservedBytes).toBe(60 * mebibyte);
  });

  it('refuses to free a block twice, also after it was merged', () => {
    const { allocator } = make();
    const [first, second] = [allocator.allocate(512)!, allocator.allocate(512)!];
    allocator.free(first);
    allocator.free(second);
    expect(() => allocator.free(second)).toThrow(/free already/);
  });

  it('starts peaks over from what is held', () => {
    const { allocator } = make();
    const block = allocator.allocate(mebibyte)!;
    allocator.free(block);
    expect(allocator.statistics.peakAllocatedBytes).toBe(mebibyte);
    allocator.resetPeaks();
    expect(allocator.statistics).toEqual({
      allocatedBytes: 0,
      peakAllocatedBytes: 0,
      reservedBytes: 2 * mebibyte,
      peakReservedBytes: 2 * mebibyte,
    });
  });

  it('never overlaps, counts exactly, and merges everything in the end', () => {
    const size = fc.oneof(
      fc.integer({ min: 0, max: 4096 }),
      fc.integer({ min: 0, max: 2 * mebibyte }),
      fc.integer({ min: 0, max: 48 * mebibyte }),
    );
    const step = fc.oneof(
      fc.record({ allocate: size }),
      fc.record({ free: fc.nat() }),
      fc.constant('emptyCache' as const),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const { memory, allocator } = make(256 * mebibyte);
        const live: Block[] = [];
        let peak = 0;
        for (const action of steps) {
          if (action === 'emptyCache') allocator.emptyCache();
          else if ('free' in action) {
            if (live.length > 0) allocator.free(live.splice(action.free % live.length, 1)[0]!);
          } else {
            const block = allocator.allocate(action.allocate);
            if (block) {
              expectFits(memory, live, block, action.allocate);
              live.push(block);
            }
          }
          const allocated = live.reduce((sum, block) => sum + block.size, 0);
          peak = Math.max(peak, allocated);
          expect(allocator.statistics.allocatedBytes).toBe(allocated);
          expect(allocator.statistics.reservedBytes).toBe(memory.held);
        }
        expect(allocator.statistics.peakAllocatedBytes).toBe(peak);
        for (const block of live) allocator.free(block);
        allocator.emptyCache();
        expect(memory.segments.size).toBe(0);
        expect(allocator.statistics).toMatchObject({ allocatedBytes: 0, reservedBytes: 0 });
      }),
      { numRuns: 200 },
    );
  });
});

function expectFits(memory: FakeMemory, live: readonly Block[], block: Block, byteLength: number): void {
  const end = block.address + block.size;
  expect(block.size).toBeGreaterThanOrEqual(byteLength);
  expect(block.address % 512).toBe(0);
  expect([...memory.segments].some(([start, bytes]) => start <= block.address && end <= start + bytes)).toBe(
    true,
  );
  expect(live.every((other) => other.address + other.size <= block.address || end <= other.address)).toBe(
    true,
  );
}
