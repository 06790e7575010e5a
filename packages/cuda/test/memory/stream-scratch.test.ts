import { describe, expect, it } from 'vitest';
import { openEmulatedGpu } from '../../src/testing/emulated-gpu.ts';

/** An emulated GPU and what its kernels keep. */
function open() {
  const device = openEmulatedGpu({ memoryBytes: 2 ** 28 });
  return { device, scratch: device.scratch.bind(device) };
}

describe('scratch', () => {
  it('is kept for each name and stream, and never shared', () => {
    const { device, scratch } = open();
    const other = device.createStream();
    const take = () => [scratch('a', 1000), scratch('b', 1000)];
    const [here, there] = [take(), device.onStream(other, take)];
    expect(new Set([...here, ...there]).size).toBe(4);
    expect(take()).toEqual(here);
    expect(device.onStream(other, take)).toEqual(there);
    expect(scratch('a', 10)).toBe(here[0]);
  });

  it('is zero at first and whenever it grows', () => {
    const { device, scratch } = open();
    const read = (address: number, byteLength: number) => {
      using pinned = device.allocatePinned(byteLength);
      device.stream.copy(pinned.address, address, byteLength);
      device.synchronize();
      return pinned.bytes.every((byte) => byte === 0);
    };
    const small = scratch('a', 1000);
    expect(read(small, 1000)).toBe(true);
    const large = scratch('a', 5000);
    expect(large).not.toBe(small);
    expect(read(large, 5000)).toBe(true);
    expect(scratch('a', 5000)).toBe(large);
  });

  it('comes from the default pool, and takes nothing for nothing', () => {
    const { device, scratch } = open();
    const pool = device.createPool();
    expect(scratch('a', 0)).toBe(0);
    expect(device.allocatedBytes).toBe(0);
    device.withPool(pool, () => scratch('a', 100));
    expect([pool.reservedBytes, device.allocatedBytes]).toEqual([0, 512]);
  });
});
