import { openGpu } from '@roofline/cuda';
import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { diagnose } from '../../src/backends/diagnose.ts';
import { cudaDeviceCount, openCudaDevice } from '../../src/backends/cuda/open-device.ts';

const mebibyte = 2 ** 20;

describe('openCudaDevice', () => {
  it('gives one object for each index, and names what is not there', () => {
    expect(openCudaDevice(0)).toBe(openCudaDevice(0));
    expect(() => openCudaDevice(cudaDeviceCount())).toThrow(/There is no cuda:/);
  });

  it('shares the memory and the streams of the GPU that cuda opens', () => {
    const [device, gpu] = [openCudaDevice(0), openGpu(0)];
    const before = device.allocatedBytes;
    using memory = gpu.upload(Float32Array.of(1, 2));
    expect(device.allocatedBytes - before).toBe(512);
    expect(gpu.stream).toBe(device.stream);
    expect([...memory.read(new Float32Array(2))]).toEqual([1, 2]);
  });
});

describe('diagnose', () => {
  it('finds what the device needs', () => {
    const lines = diagnose();
    console.table(lines);
    for (const component of ['libcuda', 'cuda:0', 'libnvrtc', 'libcublasLt']) {
      expect(lines.find((line) => line.component === component)?.status).toBe('found');
    }
  });
});

describe('memory', () => {
  it('runs out with an error that says what was asked, and works on', () => {
    const device = openCudaDevice(0);
    const { totalBytes } = device.memoryStatistics();
    expect(() => device.allocate(2 * totalBytes)).toThrow(t.OutOfMemoryError);
    const half = device.allocate(Math.floor(totalBytes * 0.5));
    expect(() => device.allocate(Math.floor(totalBytes * 0.6))).toThrow(/out of memory/);
    device.free(half);
    const other = device.allocate(Math.floor(totalBytes * 0.6));
    device.free(other);
    device.emptyCache();
    t.scope(() => expect(t.add(t.ones([3], { device }), 1).toFlatArray()).toEqual([2, 2, 2]));
  });
});

describe('events', () => {
  it('measure device time', () => {
    const device = openCudaDevice(0);
    t.scope(() => {
      const x = t.ones([64 * mebibyte], { device });
      t.add(x, 1);
      const start = device.recordEvent();
      for (let i = 0; i < 10; i++) t.add(x, 1).dispose();
      const end = device.recordEvent();
      const ms = end.elapsedMs(start);
      expect(ms).toBeGreaterThan(0.1);
      expect(ms).toBeLessThan(1000);
    });
  });
});
