import { expect, test } from 'vitest';
import { BufferPool, sizeClass } from '../../src/onnx/buffer-pool.ts';
import { OutOfMemoryError } from '@roofline/cuda/host';

const mebibyte = 2 ** 20;

function poolOf(total: number, available = () => total): BufferPool {
  return new BufferPool({ totalBytes: () => total, availableBytes: available });
}

test('what was freed is handed out again', () => {
  const pool = poolOf(1024 * mebibyte);
  const first = pool.allocate(5000);
  pool.free(first);
  expect(pool.allocate(4900).address).toBe(first.address);
  expect(pool.allocate(5000).address).not.toBe(first.address);
});

test('addresses are aligned to cache lines and point into the memory', () => {
  const pool = poolOf(1024 * mebibyte);
  for (const byteLength of [0, 1, 100, 4096, mebibyte]) {
    const buffer = pool.allocate(byteLength);
    expect(buffer.address % 64).toBe(0);
    expect(buffer.byteOffset + byteLength).toBeLessThanOrEqual(buffer.memory.byteLength);
  }
});

test('statistics', () => {
  const pool = poolOf(1024 * mebibyte);
  const [a, b] = [pool.allocate(1000), pool.allocate(mebibyte)];
  pool.free(b);
  expect(pool.statistics()).toMatchObject({
    allocatedBytes: 1000,
    reservedBytes: 1024 + mebibyte,
    peakAllocatedBytes: 1000 + mebibyte,
    peakReservedBytes: 1024 + mebibyte,
    liveStorages: 1,
  });
  pool.emptyCache();
  pool.resetPeak();
  expect(pool.statistics()).toMatchObject({
    reservedBytes: 1024,
    peakAllocatedBytes: 1000,
    peakReservedBytes: 1024,
  });
  expect(b.memory.byteLength).toBe(0);
  expect(a.memory.byteLength).toBeGreaterThan(1000);
});

test('a request beyond the memory is refused with its facts', () => {
  const pool = poolOf(512 * mebibyte);
  pool.free(pool.allocate(100 * mebibyte));
  let error: unknown;
  try {
    pool.allocate(600 * mebibyte);
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toBeInstanceOf(OutOfMemoryError);
  // The cache was given back before giving up.
  expect((error as OutOfMemoryError).details).toMatchObject({
    device: 'cpu',
    requestedBytes: 600 * mebibyte,
    heldBytes: 0,
    freeBytes: 512 * mebibyte,
  });
  expect(pool.statistics().liveStorages).toBe(0);
});

test('pages that nobody wrote yet count too', () => {
  const pool = poolOf(512 * mebibyte);
  const allocateAll = () => {
    for (let i = 0; i < 8; i++) pool.allocate(80 * mebibyte);
  };
  expect(allocateAll).toThrow(OutOfMemoryError);
});

test('memory that others have taken counts', () => {
  let free = 512 * mebibyte;
  const pool = poolOf(512 * mebibyte, () => free);
  pool.allocate(100 * mebibyte);
  free = 50 * mebibyte;
  expect(() => pool.allocate(100 * mebibyte)).toThrow(OutOfMemoryError);
});

test('size classes waste an eighth at most', () => {
  for (let byteLength = 0; byteLength < 100_000; byteLength += 37) {
    const size = sizeClass(byteLength);
    expect(size).toBeGreaterThanOrEqual(byteLength);
    expect(size % 64).toBe(0);
    expect(size).toBeLessThanOrEqual(Math.max(64, byteLength * 1.125 + 64));
    expect(sizeClass(size)).toBe(size);
  }
});

test('where memory is short, others in the process are asked to release theirs before an allocation fails', () => {
  let available = 10 * mebibyte;
  const giveBack = () => void (available = 1024 * mebibyte);
  const pool = new BufferPool({
    totalBytes: () => 1024 * mebibyte,
    availableBytes: () => available,
    giveBack,
  });
  expect(pool.allocate(100 * mebibyte).byteLength).toBe(100 * mebibyte);
  expect(available).toBe(1024 * mebibyte);
  expect(() => pool.allocate(2048 * mebibyte)).toThrow(OutOfMemoryError);
});
