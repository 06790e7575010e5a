import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import { expect, it } from 'vitest';
import { bestRate } from '../../../src/benchmarks/allreduce/link.ts';

// Emulated GPUs do not know of each other: one stands for both.
it.skipIf(!hostCompilerVersion())('copies all bytes both ways, and gives the memory back', () => {
  const gpu = openEmulatedDevice();
  const { allocatedBytes } = gpu;
  const copied: number[] = [];
  const createStream = gpu.createStream.bind(gpu);
  gpu.createStream = () => {
    const stream = createStream();
    const copy = stream.copy.bind(stream);
    stream.copy = (to, from, bytes) => {
      copied.push(bytes);
      copy(to, from, bytes);
    };
    return stream;
  };
  expect(bestRate([gpu, gpu], [4096])).toBeGreaterThan(0);
  expect(gpu.allocatedBytes).toBe(allocatedBytes);
  // 8 copies, 5 attempts, both ways, by 1, 2 and 4 streams, each with a part.
  expect(copied.reduce((sum, bytes) => sum + bytes, 0)).toBe(4096 * 8 * 5 * 2 * 3);
  expect(new Set(copied)).toEqual(new Set([4096, 2048, 1024]));
});
