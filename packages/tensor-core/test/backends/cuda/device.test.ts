import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import { architectureOf } from '@roofline/cuda/parts';
import { cudaAvailable, cudaDeviceCount, openCudaDevice } from '../../../src/backends/cuda/open-device.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../src/testing/emulated-device.ts';

const mebibyte = 2 ** 20;

describe('architectureOf', () => {
  it('takes the targets with an `a` where tensor cores need them', () => {
    expect([80, 86, 90, 100, 120].map(architectureOf)).toEqual([
      'sm_80',
      'sm_86',
      'sm_90a',
      'sm_100a',
      'sm_120',
    ]);
  });

  it('refuses what is too old', () => {
    expect(() => architectureOf(75)).toThrow(/7\.5.*8\.0/);
  });
});

describe.skipIf(cudaAvailable())('without a GPU', () => {
  it('says so, and throws only when one is opened', () => {
    expect(cudaDeviceCount()).toBe(0);
    expect(() => openCudaDevice(0)).toThrow(/libcuda was not found|cuInit failed|There is no cuda:0/);
  });
});

const usesPointwise = describe.skipIf(!hostCompilerVersion());

describe('CudaDevice on a stand-in for the driver', () => {
  it('moves bytes of any length both ways', () => {
    const device = openEmulatedDevice();
    for (const length of [1, 1000, 5 * mebibyte, 9 * mebibyte + 3]) {
      const bytes = Uint8Array.from({ length }, (_, i) => (i * 31) ^ (i >> 8));
      const buffer = device.allocate(length + 16);
      device.write(buffer, 16, bytes);
      const back = new Uint8Array(length);
      device.read(buffer, 16, back);
      expect(Buffer.compare(back, bytes)).toBe(0);
      device.free(buffer);
    }
  });

  it('keeps many small writes apart', () => {
    const device = openEmulatedDevice();
    const buffer = device.allocate(40_000 * 4);
    for (let i = 0; i < 40_000; i++) device.write(buffer, 4 * i, new Uint8Array(Uint32Array.of(i).buffer));
    const back = new Uint32Array(40_000);
    device.read(buffer, 0, new Uint8Array(back.buffer));
    expect(back.every((value, i) => value === i)).toBe(true);
  });

  it('counts memory and storages', () => {
    const device = openEmulatedDevice();
    const before = device.memoryStatistics();
    const buffer = device.allocate(3 * mebibyte);
    expect(device.memoryStatistics()).toMatchObject({
      allocatedBytes: before.allocatedBytes + 3 * mebibyte,
      reservedBytes: 20 * mebibyte,
      liveStorages: before.liveStorages + 1,
      totalBytes: 1024 * mebibyte,
      freeBytes: 1004 * mebibyte,
    });
    device.free(buffer);
    device.emptyCache();
    expect(device.memoryStatistics()).toMatchObject({ allocatedBytes: 0, reservedBytes: 0, liveStorages: 0 });
    expect(device.memoryStatistics().peakAllocatedBytes).toBe(3 * mebibyte);
    device.resetPeakMemory();
    expect(device.memoryStatistics().peakAllocatedBytes).toBe(0);
  });

  it('allocates at a place that is free, and nowhere else', () => {
    const device = openEmulatedDevice();
    const pool = device.createPool();
    const whole = device.withPool(pool, () => device.allocate(30 * mebibyte));
    const { address } = whole;
    const take = (offset: number, bytes: number) =>
      device.withPool(pool, () => device.allocateAt(address + offset, bytes));
    expect(() => take(0, 512)).toThrow(/allocateAt: 512 bytes at 0x[0-9a-f]+ are not free/);
    device.free(whole);
    const live = device.memoryStatistics().liveStorages;
    const parts = [take(mebibyte, 1000), take(2 * mebibyte, 3 * mebibyte), take(0, mebibyte)];
    expect(parts.map((part) => part.address - address)).toEqual([mebibyte, 2 * mebibyte, 0]);
    expect(pool.allocatedBytes).toBe(4 * mebibyte + 1024);
    expect(device.memoryStatistics().liveStorages).toBe(live + 3);
    for (const [offset, bytes] of [
      [mebibyte, 512],
      [mebibyte + 512, 1024],
      [4 * mebibyte, 2 * mebibyte],
      [29 * mebibyte, 2 * mebibyte],
    ] as const)
      expect(() => take(offset, bytes)).toThrow('not free');
    expect(() => device.allocateAt(address + 6 * mebibyte, 512)).toThrow('not free');
    parts.push(take(mebibyte + 1024, mebibyte - 1024));
    for (const part of parts) device.free(part);
    device.free(take(0, 30 * mebibyte));
    expect(pool).toMatchObject({ allocatedBytes: 0, reservedBytes: 30 * mebibyte });
  });

  it('says what was asked, held and free when memory runs out', () => {
    const device = openEmulatedDevice(64 * mebibyte);
    const held = device.allocate(40 * mebibyte);
    expect(() => device.allocate(30 * mebibyte)).toThrow(t.OutOfMemoryError);
    expect(() => device.allocate(30 * mebibyte)).toThrow(
      /cuda:0 is out of memory: asked for 30\.0 MiB, this process holds 40\.0 MiB, free are 24\.0 MiB/,
    );
    device.free(held);
    expect(device.allocate(60 * mebibyte).size).toBe(60 * mebibyte);
  });

  it('measures time between events', () => {
    const device = openEmulatedDevice();
    const [start, end] = [device.recordEvent(), device.recordEvent()];
    expect(end.elapsedMs(start)).toBeGreaterThanOrEqual(0);
    expect(() => end.elapsedMs({ elapsedMs: () => 0 })).toThrow(/another kind of device/);
  });

  it('describes itself', () => {
    const device = openEmulatedDevice();
    expect(device).toMatchObject({ type: 'cuda', index: 0, label: 'cuda:0', name: 'Emulated GPU' });
    expect(device.properties()).toMatchObject({
      computeCapability: '8.0',
      multiprocessors: 2,
      driverCuda: '13.0',
    });
  });
});

usesPointwise('custom ops', () => {
  const doubling = t.defineOp({
    name: 'doubling',
    autocast: 'none',
    infer: ([x]) => [x!],
    cuda: {
      kind: 'custom',
      launch: (context, [x], [y]) => {
        expect(x!.isContiguous).toBe(true);
        const scratch = context.workspace(x!.byteLength);
        const { shape, strides, dtype } = x!;
        context.copy(
          { address: x!.address, dtype, shape, strides },
          { address: scratch, dtype, shape, strides },
        );
        context.copy(
          { address: scratch, dtype, shape, strides },
          { address: y!.address, dtype, shape, strides },
        );
      },
    },
    cpu: { kind: 'host', run: () => undefined },
  });

  it('get contiguous inputs and a workspace that is freed after them', () => {
    const device = openEmulatedDevice();
    t.scope(() => {
      const x = t.transpose(
        t.tensor(
          [
            [1, 2, 3],
            [4, 5, 6],
          ],
          { device },
        ),
      );
      const before = device.memoryStatistics();
      const y = t.applyOne(doubling, [x], undefined);
      const after = device.memoryStatistics();
      expect(y.toFlatArray()).toEqual([1, 4, 2, 5, 3, 6]);
      expect(after.allocatedBytes - before.allocatedBytes).toBe(512);
      expect(after.liveStorages - before.liveStorages).toBe(1);
    });
  });
});
