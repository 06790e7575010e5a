import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Gpu } from '../../src/gpu.ts';
import { hostCompilerVersion } from '../../src/testing/emulated-compiler.ts';
import { openEmulatedGpu } from '../../src/testing/emulated-gpu.ts';

const source = `
#include "prelude.cuh"

extern "C" __global__ void misaligned(const float* x, float* y, int shift) {
  const float* address = reinterpret_cast<const float*>(reinterpret_cast<const char*>(x) + shift);
  y[threadIdx.x] = *address;
}

extern "C" __global__ void shared_past_end(const float* x, float* y, int past) {
  extern __shared__ __align__(16) float kept[];
  if (threadIdx.x == 0) kept[blockDim.x - 1 + past] = x[0];
  __syncthreads();
  if (threadIdx.x == 0) y[0] = kept[blockDim.x - 1];
}

extern "C" __global__ void diverges(const float* x, float* y, int by) {
  if (static_cast<int>(threadIdx.x) < by) {
    __syncthreads();
  } else {
    __syncthreads();
  }
  y[threadIdx.x] = x[0];
}

// What block_reduce would be without its first barrier, or with it.
extern "C" __global__ void reduces_twice(const float* x, float* y, int waits) {
  __shared__ float partial[4];
  float sum = 0;
  for (int round = 1; round <= 2; round++) {
    if (waits) __syncthreads();
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = round * x[0];
    __syncthreads();
    sum += 10 * round * partial[(threadIdx.x / 32 + 1) % 4];
  }
  y[threadIdx.x] = sum;
}

extern "C" __global__ void waits_alone(const float* x, float* y, int lanes) {
  if (static_cast<int>(threadIdx.x) < lanes) {
    y[threadIdx.x] = __shfl_xor_sync(kFullWarp, x[0], 1);
  } else {
    __syncthreads();
  }
}
`;

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'roofline-emulator-test-'));
  writeFileSync(join(folder, 'faults.cu'), source);
});

afterAll(() => rmSync(folder, { recursive: true }));

/** y of a kernel (x, y, number) that a block of 128 threads runs. */
function run(gpu: Gpu, name: string, number: number, sharedBytes = 0): number[] {
  const kernel = gpu.kernel({ source: pathToFileURL(join(folder, 'faults.cu')), name, parameters: 'ppi' });
  using x = gpu.upload(Float32Array.of(1.5, 2.5));
  using y = gpu.allocateMemory(4 * 128);
  kernel.launch([1, 1, 1], 128, sharedBytes, [x.address, y.address, number]);
  return [...y.read(new Float32Array(128))];
}

describe.skipIf(!hostCompilerVersion())('the emulated GPU', () => {
  it('fails a launch that reads a misaligned address, by name, and every call from then on', () => {
    const device = openEmulatedGpu();
    expect(run(device, 'misaligned', 4)[0]).toBe(2.5);
    expect(() => run(device, 'misaligned', 2)).toThrow(/716, misaligned address in kernel misaligned/);
    expect(() => device.synchronize()).toThrow(/716/);
  });

  it('gives kernels the dynamic shared memory of their launch and no more', () => {
    expect(run(openEmulatedGpu(), 'shared_past_end', 0, 512)[0]).toBe(1.5);
    expect(() => run(openEmulatedGpu(), 'shared_past_end', 1, 512)).toThrow(/700, illegal address/);
    expect(() => run(openEmulatedGpu(), 'shared_past_end', 0, 496)).toThrow(/700/);
  });

  it('fails a launch whose threads wait at different barriers, or for threads that never come', () => {
    expect(run(openEmulatedGpu(), 'diverges', 0)[5]).toBe(1.5);
    expect(() => run(openEmulatedGpu(), 'diverges', 40)).toThrow(/719, threads of a block wait/);
    expect(() => run(openEmulatedGpu(), 'waits_alone', 16)).toThrow(/719/);
  });

  it('shows a missing barrier', () => {
    const right = new Array(128).fill(75);
    expect(run(openEmulatedGpu(), 'reduces_twice', 1)).toEqual(right);
    expect(run(openEmulatedGpu(), 'reduces_twice', 0)).not.toEqual(right);
  });

  it('gives the same order for the same seed', () => {
    const orders = [1, 1, 2, 3].map((seed) => {
      const device = openEmulatedGpu({ memoryBytes: 2 ** 26, seed });
      const streams = Array.from({ length: 4 }, () => device.createStream());
      using pinned = device.allocatePinned(16);
      const buffer = device.allocateBlock(1);
      streams.forEach((stream, i) => {
        for (let round = 0; round < 4; round++) {
          stream.fill(buffer.address, 4 * i + round, 1);
          stream.copy(pinned.address + 4 * i + round, buffer.address, 1);
        }
      });
      device.synchronize();
      return [...pinned.bytes].join();
    });
    expect(orders[0]).toBe(orders[1]);
    expect(new Set(orders).size).toBeGreaterThan(1);
  });
});
