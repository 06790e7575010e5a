import { describe, expect, it } from 'vitest';
import { openEmulatedGpu } from '../../src/testing/emulated-gpu.ts';

const mebibyte = 2 ** 20;

describe('withPool', () => {
  it('allocates from segments of the pool, which nothing else gets', () => {
    const device = openEmulatedGpu();
    const pool = device.createPool();
    const inside = device.withPool(pool, () => device.allocateBlock(1000));
    expect(pool).toMatchObject({ allocatedBytes: 1024, reservedBytes: 2 * mebibyte });
    device.freeBlock(inside);
    const outside = device.allocateBlock(1000);
    expect(outside.address).not.toBe(inside.address);
    expect(device.withPool(pool, () => device.allocateBlock(1000).address)).toBe(inside.address);
    expect(device.memoryStatistics()).toMatchObject({ allocatedBytes: 2048, reservedBytes: 4 * mebibyte });
    expect(device.memorySegments().map(({ bytes }) => bytes)).toEqual([2 * mebibyte, 2 * mebibyte]);
  });

  it('takes segments no larger than its blocks where they are to be exact', () => {
    const device = openEmulatedGpu();
    const pool = device.createPool({ segmentSize: 'exact' });
    const blocks = device.withPool(pool, () =>
      [1000, 3 * mebibyte, 21 * mebibyte + 1].map((bytes) => device.allocateBlock(bytes)),
    );
    expect(device.memorySegments().map(({ bytes }) => bytes)).toEqual([
      1024,
      3 * mebibyte,
      21 * mebibyte + 512,
    ]);
    for (const block of blocks) device.freeBlock(block);
    expect(device.withPool(pool, () => device.allocateBlock(700).address)).toBe(blocks[0]!.address);
    expect(pool.reservedBytes).toBe(24 * mebibyte + 1536);
  });

  it('ends with the call, thrown or not, and nests', () => {
    const device = openEmulatedGpu();
    const [a, b] = [device.createPool(), device.createPool()];
    const fail = () => {
      device.allocateBlock(512);
      throw new RangeError('inside');
    };
    device.withPool(a, () => {
      expect(() => device.withPool(b, fail)).toThrow(RangeError);
      device.allocateBlock(1024);
    });
    device.allocateBlock(2048);
    expect([a.allocatedBytes, b.allocatedBytes]).toEqual([1024, 512]);
    expect(device.allocatedBytes).toBe(3584);
    expect(() => device.withPool(a, async () => 1)).toThrow(/withPool: the function is async/);
  });

  it('has blocks of its own for each stream', () => {
    const device = openEmulatedGpu();
    const [pool, other] = [device.createPool(), device.createStream()];
    const addresses = device.withPool(pool, () => {
      const here = device.allocateBlock(1000);
      device.freeBlock(here);
      const there = device.onStream(other, () => device.allocateBlock(1000));
      return [here.address, there.address, device.allocateBlock(1000).address];
    });
    expect(addresses[1]).not.toBe(addresses[0]);
    expect(addresses[2]).toBe(addresses[0]);
    expect(pool.reservedBytes).toBe(4 * mebibyte);
    expect(device.onStream(other, () => device.withPool(pool, () => device.stream))).toBe(other);
  });

  it('keeps its segments when the cache is emptied, and when memory runs out', () => {
    const device = openEmulatedGpu({ memoryBytes: 64 * mebibyte });
    const pool = device.createPool();
    const address = device.withPool(pool, () => {
      const block = device.allocateBlock(30 * mebibyte);
      device.freeBlock(block);
      return block.address;
    });
    device.emptyCache();
    expect(pool.reservedBytes).toBe(30 * mebibyte);
    expect(() => device.allocateBlock(40 * mebibyte)).toThrow(/out of memory/);
    expect(device.withPool(pool, () => device.allocateBlock(30 * mebibyte)).address).toBe(address);
  });
});

describe('MemoryPool.holdFree', () => {
  it('hands out what is free in it, of all streams, under its name, and counts it', () => {
    const device = openEmulatedGpu();
    const [pool, stream] = [device.createPool(), device.createStream()];
    const [kept, shared] = device.withPool(pool, () => {
      const blocks = [1000, 2000, 3 * mebibyte].map((bytes) => device.allocateBlock(bytes));
      device.freeBlock(device.onStream(stream, () => device.allocateBlock(5 * mebibyte)));
      device.freeBlock(blocks[2]!);
      return blocks;
    });
    // Freed while another stream may still use it.
    device.recordStream(shared!, stream);
    device.freeBlock(shared!);
    const told: (string | undefined)[] = [];
    const nothing = () => undefined;
    device.observeMemory({
      ...{ freed: nothing, segmentReserved: nothing, segmentReleased: nothing },
      allocated: (_address, _requested, _bytes, _kind, name) => void told.push(name),
    });
    const held = pool.holdFree('arena of step');
    device.observeMemory(null);
    expect(held.length).toBeGreaterThanOrEqual(3);
    expect(told).toEqual(held.map(() => 'arena of step'));
    expect(pool.allocatedBytes).toBe(pool.reservedBytes);
    expect(device.memoryStatistics()).toMatchObject({
      allocatedBytes: pool.reservedBytes,
      peakAllocatedBytes: pool.reservedBytes,
    });
    const blocks = device.memorySegments().flatMap((segment) => segment.blocks);
    expect(blocks.filter(({ name }) => name === 'arena of step')).toHaveLength(held.length);
    expect(pool.holdFree('again')).toEqual([]);
    for (const block of [...held, kept!]) device.freeBlock(block);
    expect(pool.allocatedBytes).toBe(0);
    expect(device.memorySegments().some((segment) => segment.blocks.some(({ name }) => name))).toBe(false);
    expect(device.withPool(pool, () => device.allocateBlock(1000)).name).toBeNull();
  });

  it('refuses a name that is none', () => {
    expect(() =>
      openEmulatedGpu()
        .createPool()
        .holdFree(5 as unknown as string),
    ).toThrow(/holdFree: the name/);
  });
});

describe('MemoryPool.emptyCache', () => {
  it('gives back the segments of this pool that nobody has a block of', () => {
    const device = openEmulatedGpu();
    const [pool, other] = [device.createPool(), device.createPool()];
    const allocate = (of: typeof pool) => device.withPool(of, () => device.allocateBlock(30 * mebibyte));
    const [kept, freed] = [allocate(pool), allocate(pool)];
    device.freeBlock(allocate(other));
    device.freeBlock(freed);
    pool.emptyCache();
    expect([pool.reservedBytes, other.reservedBytes]).toEqual([30 * mebibyte, 30 * mebibyte]);
    // It goes on.
    device.freeBlock(allocate(pool));
    device.freeBlock(kept);
    pool.emptyCache();
    expect(pool.reservedBytes).toBe(0);
  });
});

describe('MemoryPool.release', () => {
  it('gives free segments back at once, and the others with their last block', () => {
    const device = openEmulatedGpu();
    const pool = device.createPool();
    const [small, large, free] = device.withPool(pool, () =>
      [1000, 30 * mebibyte, 40 * mebibyte].map((bytes) => device.allocateBlock(bytes)),
    );
    device.freeBlock(free!);
    pool.release();
    pool.release();
    expect(pool.reservedBytes).toBe(32 * mebibyte);
    device.freeBlock(large!);
    expect(pool.reservedBytes).toBe(2 * mebibyte);
    device.freeBlock(small!);
    expect(device.memoryStatistics()).toMatchObject({ allocatedBytes: 0, reservedBytes: 0 });
    expect(device.memorySegments()).toEqual([]);
  });

  it('gives back a block that another stream still uses', () => {
    const device = openEmulatedGpu();
    const pool = device.createPool();
    const block = device.withPool(pool, () => device.allocateBlock(1000));
    device.recordStream(block, device.createStream());
    pool.release();
    device.freeBlock(block);
    expect(device.memoryStatistics()).toMatchObject({ allocatedBytes: 0, reservedBytes: 0 });
  });

  it('ends allocation, and is refused inside its own withPool', () => {
    const device = openEmulatedGpu();
    const pool = device.createPool();
    device.withPool(pool, () => {
      expect(() => pool.release()).toThrow(/in use by withPool/);
      device.withPool(device.createPool(), () => expect(() => pool.release()).toThrow(/in use/));
    });
    pool.release();
    expect(() => device.withPool(pool, () => 1)).toThrow(/is released/);
    expect(() => device.withPool(openEmulatedGpu().createPool(), () => 1)).toThrow(/another device/);
  });
});
