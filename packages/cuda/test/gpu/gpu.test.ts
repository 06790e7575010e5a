import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { architectureOf } from '../../src/architecture.ts';
import { OutOfMemoryError } from '../../src/base/errors.ts';
import { diagnose } from '../../src/diagnose.ts';
import { gpuCount } from '../../src/driver/driver.ts';
import { KernelBuilder } from '../../src/nvrtc/compile.ts';
import { KernelCache } from '../../src/nvrtc/kernel-cache.ts';
import { openGpu } from '../../src/open-gpu.ts';

const mebibyte = 2 ** 20;

describe('openGpu', () => {
  it('gives one object for each index, and names what is not there', () => {
    expect(openGpu()).toBe(openGpu(0));
    expect(() => openGpu(gpuCount())).toThrow(/There is no cuda:/);
  });

  it('tells facts that a GPU can have', () => {
    const { facts, name } = openGpu();
    console.log(name, openGpu().properties());
    expect(facts.multiprocessors).toBeGreaterThan(0);
    expect(facts.computeCapability).toBeGreaterThanOrEqual(80);
    expect(facts.totalBytes).toBeGreaterThan(2 ** 30);
  });

  it('opens what the diagnosis finds', () => {
    const lines = diagnose();
    for (const component of ['libcuda', 'cuda:0', 'libnvrtc'])
      expect(lines.find((line) => line.component === component)?.status).toBe('found');
  });
});

describe('memory', () => {
  it('comes back bit by bit, small and large', () => {
    const gpu = openGpu();
    for (const length of [1, 7, 4096, 5 * mebibyte + 3, 64 * mebibyte + 1]) {
      const bytes = new Uint8Array(length);
      for (let i = 0; i < length; i++) bytes[i] = (i * 31) ^ (i >> 7);
      const buffer = gpu.allocateMemory(length);
      buffer.write(bytes);
      const back = new Uint8Array(length);
      buffer.read(back);
      expect(Buffer.compare(back, bytes)).toBe(0);
      buffer.free();
    }
  });

  it('keeps many small writes apart', () => {
    const gpu = openGpu();
    const buffer = gpu.allocateMemory(4 * 50_000);
    for (let i = 0; i < 50_000; i++) buffer.write(Uint32Array.of(i), 4 * i);
    const back = new Uint32Array(50_000);
    buffer.read(back);
    expect(back.every((value, i) => value === i)).toBe(true);
    buffer.free();
  });

  it('is counted, cached and given back', () => {
    const gpu = openGpu();
    gpu.emptyCache();
    const before = gpu.memoryStatistics();
    const buffer = gpu.allocateMemory(512 * mebibyte);
    const during = gpu.memoryStatistics();
    expect(during.allocatedBytes - before.allocatedBytes).toBe(512 * mebibyte);
    expect(before.freeBytes - during.freeBytes).toBeGreaterThanOrEqual(512 * mebibyte);
    buffer.free();
    expect(gpu.memoryStatistics().reservedBytes).toBe(during.reservedBytes);
    gpu.emptyCache();
    expect(gpu.memoryStatistics().reservedBytes).toBe(before.reservedBytes);
  });

  it('runs out with an error that says what was asked, and works on', () => {
    const gpu = openGpu();
    const { totalBytes } = gpu.memoryStatistics();
    expect(() => gpu.allocateMemory(2 * totalBytes)).toThrow(OutOfMemoryError);
    using small = gpu.upload(Float32Array.of(1, 2));
    expect([...small.read(new Float32Array(2))]).toEqual([1, 2]);
  });
});

describe('PinnedMemory', () => {
  it('carries bytes both ways', () => {
    const gpu = openGpu();
    const stream = gpu.createStream();
    const byteLength = 3 * mebibyte + 5;
    using from = gpu.allocatePinned(byteLength);
    using to = gpu.allocatePinned(byteLength);
    for (let i = 0; i < byteLength; i++) from.bytes[i] = (i * 31) ^ (i >> 9);
    const buffer = gpu.onStream(stream, () => gpu.allocateBlock(byteLength));
    stream.copy(buffer.address, from.address, byteLength);
    stream.copy(to.address, buffer.address, byteLength);
    stream.synchronize();
    expect(Buffer.compare(to.bytes, from.bytes)).toBe(0);
    gpu.freeBlock(buffer);
  });
});

describe('kernels on two streams', () => {
  it('see what they wait for', () => {
    const gpu = openGpu();
    const source = new URL('../../examples/add.cu', import.meta.url);
    const add = gpu.kernel({ source, name: 'add', parameters: 'pppi' });
    const n = 8 * mebibyte;
    const grid = [Math.ceil(n / 256), 1, 1] as const;
    const other = gpu.createStream();
    using x = gpu.upload(new Float32Array(n).fill(1));
    using y = gpu.allocateMemory(4 * n);
    for (let round = 0; round < 10; round++) {
      add.launch(grid, 256, 0, [x.address, x.address, y.address, n]);
      other.waitFor(gpu.recordEvent());
      gpu.onStream(other, () => add.launch(grid, 256, 0, [y.address, x.address, y.address, n]));
      gpu.stream.waitFor(other.recordEvent());
    }
    expect(y.read(new Float32Array(n)).every((value) => value === 3)).toBe(true);
  });
});

describe('kernels', () => {
  it('report the log and the source if they do not compile', () => {
    const builder = new KernelBuilder(architectureOf(openGpu().facts.computeCapability));
    expect(() =>
      builder.buildText('broken', 'extern "C" __global__ void broken() { undefined_name(); }'),
    ).toThrow(/Kernel broken does not compile[^]*undefined_name[^]*1 \| extern/);
  });

  it('come from the disk cache the second time', () => {
    const folder = mkdtempSync(join(tmpdir(), 'roofline-gpu-cache-'));
    const builder = new KernelBuilder(architectureOf(openGpu().facts.computeCapability), {
      cache: new KernelCache(folder),
    });
    const timed = () => {
      const start = performance.now();
      builder.buildText('empty', '#include "prelude.cuh"\nextern "C" __global__ void empty() {}');
      return performance.now() - start;
    };
    const [cold, warm] = [timed(), timed()];
    console.log(`one kernel: compiled in ${cold.toFixed(1)} ms, cached ${warm.toFixed(2)} ms`);
    expect(readdirSync(folder)).toHaveLength(1);
    expect(warm).toBeLessThan(cold);
    rmSync(folder, { recursive: true });
  });

  it('take arguments of every kind', () => {
    const folder = mkdtempSync(join(tmpdir(), 'roofline-gpu-kernel-'));
    const path = join(folder, 'arguments.cu');
    writeFileSync(
      path,
      `struct alignas(64) Big { double values[8]; };
       extern "C" __global__ void arguments(double* out, int i, unsigned u, long long l, float f, double d,
                                            const __grid_constant__ Big big, int last) {
         double all[] = {double(i), double(u), double(l), double(f), d, big.values[0], big.values[7], double(last)};
         out[threadIdx.x] = all[threadIdx.x];
       }`,
    );
    const source = pathToFileURL(path);
    const spec = { source, name: 'arguments', parameters: 'piulfdTi' };
    const structure = new Uint8Array(Float64Array.of(1.5, 0, 0, 0, 0, 0, 0, 2.5).buffer);
    const gpu = openGpu();
    using out = gpu.allocateMemory(64);
    gpu.kernel(spec).launch([1, 1, 1], 8, 0, [out.address, -3, 4e9, -(2 ** 40), 0.25, Math.PI, structure, 7]);
    expect([...out.read(new Float64Array(8))]).toEqual([-3, 4e9, -(2 ** 40), 0.25, Math.PI, 1.5, 2.5, 7]);
    rmSync(folder, { recursive: true });
  });
});
