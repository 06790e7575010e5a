import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { diagnose } from '../../src/backends/diagnose.ts';
import { KernelBuilder } from '../../src/cuda/nvrtc/compile.ts';
import { architectureOf } from '../../src/cuda/architecture.ts';
import { cudaDeviceCount, openCudaDevice } from '../../src/backends/cuda/open-device.ts';
import { KernelCache } from '../../src/cuda/nvrtc/kernel-cache.ts';

const mebibyte = 2 ** 20;

describe('openCudaDevice', () => {
  it('gives one object for each index, and names what is not there', () => {
    expect(openCudaDevice(0)).toBe(openCudaDevice(0));
    expect(() => openCudaDevice(cudaDeviceCount())).toThrow(/There is no cuda:/);
  });

  it('reports plausible facts of a GPU', () => {
    const { facts, name } = openCudaDevice(0);
    console.log(name, openCudaDevice(0).properties());
    expect(facts.multiprocessors).toBeGreaterThan(0);
    expect(facts.computeCapability).toBeGreaterThanOrEqual(80);
    expect(facts.totalBytes).toBeGreaterThan(2 ** 30);
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
  it('comes back bit by bit, small and large', () => {
    const device = openCudaDevice(0);
    for (const length of [1, 7, 4096, 5 * mebibyte + 3, 64 * mebibyte + 1]) {
      const bytes = new Uint8Array(length);
      for (let i = 0; i < length; i++) bytes[i] = (i * 31) ^ (i >> 7);
      const buffer = device.allocate(length);
      device.write(buffer, 0, bytes);
      const back = new Uint8Array(length);
      device.read(buffer, 0, back);
      expect(Buffer.compare(back, bytes)).toBe(0);
      device.free(buffer);
    }
  });

  it('keeps many small writes apart', () => {
    const device = openCudaDevice(0);
    const buffer = device.allocate(4 * 50_000);
    for (let i = 0; i < 50_000; i++) device.write(buffer, 4 * i, new Uint8Array(Uint32Array.of(i).buffer));
    const back = new Uint32Array(50_000);
    device.read(buffer, 0, new Uint8Array(back.buffer));
    expect(back.every((value, i) => value === i)).toBe(true);
    device.free(buffer);
  });

  it('is counted, cached and given back', () => {
    const device = openCudaDevice(0);
    device.emptyCache();
    const before = device.memoryStatistics();
    const buffer = device.allocate(512 * mebibyte);
    const during = device.memoryStatistics();
    expect(during.allocatedBytes - before.allocatedBytes).toBe(512 * mebibyte);
    expect(before.freeBytes - during.freeBytes).toBeGreaterThanOrEqual(512 * mebibyte);
    device.free(buffer);
    expect(device.memoryStatistics().reservedBytes).toBe(during.reservedBytes);
    device.emptyCache();
    expect(device.memoryStatistics().reservedBytes).toBe(before.reservedBytes);
  });

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

  it('let the stream wait', () => {
    const device = openCudaDevice(0);
    device.stream.waitFor(device.recordEvent());
    device.synchronize();
  });
});

describe('kernels', () => {
  it('report the log and the source if they do not compile', () => {
    const builder = new KernelBuilder(architectureOf(openCudaDevice(0).facts.computeCapability));
    expect(() =>
      builder.buildText('broken', 'extern "C" __global__ void broken() { undefined_name(); }'),
    ).toThrow(/Kernel broken does not compile[^]*undefined_name[^]*1 \| extern/);
  });

  it('come from the disk cache the second time', () => {
    const folder = mkdtempSync(join(tmpdir(), 'roofline-gpu-cache-'));
    const builder = new KernelBuilder(architectureOf(openCudaDevice(0).facts.computeCapability), {
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
    const op = t.defineOp({
      name: 'arguments',
      autocast: 'none',
      infer: ([x]) => [x!],
      cuda: {
        kind: 'custom',
        launch: (context, _, [y]) =>
          context
            .kernel(spec)
            .launch([1, 1, 1], 8, 0, [y!.address, -3, 4e9, -(2 ** 40), 0.25, Math.PI, structure, 7]),
      },
      cpu: { kind: 'host', run: () => undefined },
    });
    t.scope(() => {
      const x = t.zeros([8], { device: openCudaDevice(0), dtype: 'float64' });
      expect(t.applyOne(op, [x], undefined).toFlatArray()).toEqual([
        -3,
        4e9,
        -(2 ** 40),
        0.25,
        Math.PI,
        1.5,
        2.5,
        7,
      ]);
    });
    rmSync(folder, { recursive: true });
  });
});
