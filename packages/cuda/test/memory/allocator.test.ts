import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { MemoryPool } from '../../src/memory/memory-pool.ts';
import { CachingAllocator } from '../../src/memory/allocator.ts';
import type { Block } from '../../src/memory/block.ts';
import { AllocatorModel, type ModelBlock } from './allocator-model.ts';

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

  it('remembers more sizes than it keeps classes for', () => {
    const { allocator } = make();
    const sizes = Array.from({ length: 400 }, (_, i) => 512 * (i + 1));
    for (let round = 0; round < 3; round++) {
      for (const size of sizes) {
        const [block, fence] = [allocator.allocate(size)!, allocator.allocate(512)!];
        allocator.free(block);
        const again = allocator.allocate(size)!;
        expect(again.address).toBe(block.address);
        allocator.free(again);
        allocator.free(fence);
      }
    }
    expect(allocator.statistics.allocatedBytes).toBe(0);
  });
});

describe('a block that other queues have used', () => {
  function makeQueues(count: number) {
    const log: string[] = [];
    let clock = 0;
    const queues = Array.from({ length: count }, (_, i) => ({
      recordEvent: () => {
        const name = `${i}@${clock++}`;
        log.push(`record ${name}`);
        return { name, dispose: () => log.push(`dispose ${name}`) };
      },
      waitFor: (event: object) => log.push(`${i} waits ${(event as { name: string }).name}`),
    }));
    const memory = new FakeMemory();
    const retired: number[] = [];
    const source = {
      reserve: (bytes: number) => memory.reserve(bytes),
      release: (address: number) => memory.release(address),
      retired: (address: number, bytes: number, queue: unknown) => {
        retired.push(address, bytes, queues.indexOf(queue as (typeof queues)[number]));
      },
    };
    return { log, queues, retired, allocator: new CachingAllocator(source, queues[0]!) };
  }

  it('rests until its queue has nothing else, which then waits for each of them', () => {
    const { log, queues, retired, allocator } = makeQueues(3);
    const block = allocator.allocate(12 * mebibyte)!;
    for (const queue of [queues[1]!, queues[2]!, queues[1]!, queues[0]!]) block.usedBy(queue);
    allocator.free(block);
    expect(log).toEqual(['record 1@0', 'record 2@1']);
    expect(retired).toEqual([]);
    allocator.allocate(512);
    expect(log).toHaveLength(2);
    expect(allocator.allocate(11 * mebibyte)!.address).toBe(block.address);
    expect(log.slice(2)).toEqual(['0 waits 1@0', 'dispose 1@0', '0 waits 2@1', 'dispose 2@1']);
    expect(retired).toEqual([block.address, 12 * mebibyte, 0]);
  });

  it('forgets its users when it is handed out again', () => {
    const { log, queues, allocator } = makeQueues(2);
    const block = allocator.allocate(12 * mebibyte)!;
    block.usedBy(queues[1]!);
    allocator.free(block);
    allocator.free(allocator.allocate(12 * mebibyte)!);
    expect(log.filter((line) => line.startsWith('record'))).toHaveLength(1);
  });

  it('is not freed twice, nor handed to another queue', () => {
    const { queues, allocator } = makeQueues(2);
    const block = allocator.allocate(12 * mebibyte)!;
    block.usedBy(queues[1]!);
    allocator.free(block);
    expect(() => allocator.free(block)).toThrow(/free already/);
    allocator.select(allocator.defaultPool, queues[1]!);
    expect(allocator.allocate(12 * mebibyte)!.address).not.toBe(block.address);
  });

  it('goes back to the source when the cache is emptied', () => {
    const { queues, allocator } = makeQueues(2);
    const block = allocator.allocate(12 * mebibyte)!;
    block.usedBy(queues[1]!);
    allocator.free(block);
    allocator.emptyCache();
    expect(allocator.statistics).toMatchObject({ allocatedBytes: 0, reservedBytes: 0 });
  });
});

describe('CachingAllocator beside a simple model', () => {
  const anySize = fc.oneof(
    fc.integer({ min: 0, max: 4096 }),
    fc.integer({ min: 0, max: 2 * mebibyte }),
    fc.integer({ min: 0, max: 48 * mebibyte }),
    fc.constantFrom(512, 1024, mebibyte, mebibyte + 512, 10 * mebibyte - 512, 10 * mebibyte),
  );
  // Few sizes, so that several free blocks have the same one, and neighbours of every kind meet.
  const fewSizes = fc.constantFrom(...[1, 1, 2, 3, 5].map((i) => i * 256 * 1024));
  const stepOf = (size: fc.Arbitrary<number>, places: number) =>
    fc.oneof(
      { weight: 12, arbitrary: fc.record({ allocate: size, queue: fc.nat(places), pool: fc.nat(places) }) },
      { weight: 10, arbitrary: fc.record({ free: fc.nat() }) },
      { weight: 3, arbitrary: fc.record({ use: fc.nat(), by: fc.nat(1) }) },
      { weight: 1, arbitrary: fc.constant('emptyCache' as const) },
    );

  it.each<[string, fc.Arbitrary<number>, number, number]>([
    ['any sizes', anySize, 1, Infinity],
    ['any sizes and 256 MiB', anySize, 1, 256 * mebibyte],
    ['few sizes', fewSizes, 0, Infinity],
    ['few sizes in two pools', fewSizes, 1, 40 * mebibyte],
  ])('does the same at every step, with %s', (_, size, places, capacity) => {
    const step = stepOf(size, places);
    fc.assert(
      fc.property(fc.array(step, { minLength: 100, maxLength: 160, size: 'max' }), (steps) => {
        const memory = new FakeMemory(capacity);
        const queues = [queue(), queue()];
        const allocator = new CachingAllocator(memory, queues[0]!);
        const pools = [allocator.defaultPool, allocator.createPool()];
        const model = new AllocatorModel();
        const live: [Block, ModelBlock][] = [];
        for (const action of steps) {
          if (action === 'emptyCache') {
            allocator.emptyCache();
            model.emptyCache(0);
          } else if ('use' in action) {
            const pair = live[action.use % live.length];
            pair?.[0].usedBy(queues[action.by]!);
            if (pair) model.use(pair[1], action.by);
          } else if ('free' in action) {
            const [pair] = live.splice(action.free % Math.max(1, live.length), 1);
            if (pair) {
              allocator.free(pair[0]);
              model.free(pair[1]);
            }
          } else {
            allocateBoth(action, { memory, queues, pools, allocator, model, live });
          }
          model.expectSame(allocator.segments());
          const { allocatedBytes, peakAllocatedBytes, reservedBytes, peakReservedBytes } = model;
          const statistics = { allocatedBytes, peakAllocatedBytes, reservedBytes, peakReservedBytes };
          if (!isDeepStrictEqual(allocator.statistics, statistics)) {
            expect(allocator.statistics).toEqual(statistics);
          }
          expect(reservedBytes).toBe(memory.held);
          expect(pools.reduce((sum, pool) => sum + pool.allocatedBytes, 0)).toBe(allocatedBytes);
          expect(pools.reduce((sum, pool) => sum + pool.reservedBytes, 0)).toBe(reservedBytes);
        }
        for (const [block] of live) allocator.free(block);
        allocator.emptyCache();
        pools[1]!.release();
        expect(memory.segments.size).toBe(0);
        expect(allocator.statistics).toMatchObject({ allocatedBytes: 0, reservedBytes: 0 });
      }),
      { numRuns: 50 },
    );
  });
});

interface Both {
  memory: FakeMemory;
  queues: ReturnType<typeof queue>[];
  pools: MemoryPool[];
  allocator: CachingAllocator;
  model: AllocatorModel;
  live: [Block, ModelBlock][];
}

/** The model is told where the allocator got a new segment, and asks for one exactly when the allocator does. */
function allocateBoth(
  action: { allocate: number; queue: number; pool: number },
  { memory, queues, pools, allocator, model, live }: Both,
): void {
  const before = new Set(memory.segments.keys());
  allocator.select(pools[action.pool]!, queues[action.queue]!);
  const block = allocator.allocate(action.allocate);
  const reserved = [...memory.segments].find(([address]) => !before.has(address));
  let asked = false;
  const expected = model.allocate(action.allocate, action.queue, action.pool, (bytes) => {
    asked = true;
    // With no room at first, the cache of the default pool goes back.
    if ([...before].some((address) => !memory.segments.has(address)) || !reserved) model.emptyCache(0);
    if (!reserved) return null;
    expect(reserved[1]).toBe(bytes);
    return reserved[0];
  });
  expect(asked).toBe(reserved !== undefined || block === null);
  expect(block?.address).toBe(expected?.address);
  if (!block || !expected) return;
  expect([block.size, block.byteLength]).toEqual([expected.size, action.allocate]);
  live.push([block, expected]);
}
