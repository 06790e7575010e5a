import { describe, expect, it } from 'vitest';
import { headTensorMap } from '../../../src/cuda/hopper/head-tensor-map.ts';
import { hopperBackwardSharedBytes } from '../../../src/cuda/hopper/hopper-backward.ts';
import { planHopperBackward } from '../../../src/cuda/hopper/hopper-backward-plan.ts';
import type { KernelProblem } from '../../../src/cuda/kernel-problem.ts';

const problem: KernelProblem = {
  ...{ dtype: 'bfloat16', kernels: 'auto' },
  ...{ batch: 1, heads: 16, keyHeads: 16, queries: 4096, keys: 4096, headDimension: 64 },
  ...{ causal: true, scale: 0.125, deterministic: false, float32Precision: 'highest' },
  ...{ computeCapability: 90, multiprocessors: 132, maxSharedBytesPerBlock: 227 * 1024 },
};
const planOf = (changes: Partial<KernelProblem>) => planHopperBackward({ ...problem, ...changes })!;
const dimensions = Array.from({ length: 16 }, (_, i) => 8 * (i + 1));

describe('planHopperBackward', () => {
  it('takes the tile of the next head dimension that kernels are compiled for', () => {
    const tileOf = (headDimension: number) => planOf({ headDimension }).backward.headDimension;
    expect(dimensions.map(tileOf)).toEqual([...Array(8).fill(64), 80, 80, 96, 96, ...Array(4).fill(128)]);
  });

  it.each([
    ['columns that TMA cannot read', { headDimension: 20 }],
    ['more columns than registers hold sums of', { headDimension: 136 }],
    ['float32', { dtype: 'float32' }],
    ['another GPU', { computeCapability: 89 }],
    ['a newer GPU, which lacks wgmma', { computeCapability: 100 }],
    ['no queries', { queries: 0 }],
    ['no keys', { keys: 0 }],
    ['no batch', { batch: 0 }],
    ['more heads than a grid has rows', { batch: 4096 }],
    ['more tiles than 32 bits count', { batch: 2 ** 10, queries: 2 ** 26 }],
  ] as const)('does not take %s', (_, changes) => {
    expect(planHopperBackward({ ...problem, ...changes })).toBeNull();
  });

  it('takes any scale, and the same bits twice', () => {
    expect(planOf({ scale: -0.2 }).family).toBe('hopper');
    expect(planOf({ deterministic: true }).family).toBe('hopper');
  });

  it('sums gradQ in order where it must, and where that is faster', () => {
    const isOrdered = (changes: Partial<KernelProblem>) => planOf(changes).backward.sumBuffers > 0;
    for (const headDimension of dimensions) {
      expect(isOrdered({ headDimension })).toBe(false);
      expect(isOrdered({ headDimension, deterministic: true })).toBe(true);
      expect(isOrdered({ headDimension, queries: 1024, keys: 1024 })).toBe(true);
    }
    const full = (length: number) => isOrdered({ causal: false, queries: length, keys: length });
    expect([128, 129, 1024].map(full)).toEqual([true, false, false]);
    expect(isOrdered({ queries: 1, keys: 4096 })).toBe(false);
  });

  it('takes heads together in even bands, never less than one', () => {
    const bandOf = (changes: Partial<KernelProblem>) => planOf(changes).backwardBand;
    expect(bandOf({ headDimension: 128, queries: 16384 })).toBe(4);
    expect(bandOf({ queries: 2 ** 20, keys: 2 ** 20 })).toBe(1);
    expect(bandOf({ keyHeads: 4, queries: 16384 })).toBe(1);
    expect(bandOf({ headDimension: 128, queries: 16384, heads: 5, keyHeads: 5 })).toBe(3);
  });

  it('takes more heads together where their blocks wait for one another', () => {
    const bandOf = (heads: number) =>
      planOf({ headDimension: 128, queries: 16384, heads, keyHeads: heads, deterministic: true })
        .backwardBand;
    expect([1, 5, 16, 32, 40].map(bandOf)).toEqual([1, 5, 16, 16, 14]);
  });

  it('fits the shared memory and the registers of its GPU', () => {
    for (const headDimension of dimensions)
      for (const deterministic of [true, false]) {
        const { backward } = planOf({ headDimension, deterministic });
        expect(hopperBackwardSharedBytes(backward)).toBeLessThanOrEqual(227 * 1024);
        const { consumerRegisters, producerRegisters } = backward;
        expect(128 * (2 * consumerRegisters + producerRegisters)).toBeLessThanOrEqual(65536);
      }
  });

  it('has tensor maps of as many parts as its kernels copy at a time', () => {
    for (const headDimension of dimensions)
      for (const deterministic of [true, false]) {
        const { headDimension: padded, chunk } = planOf({ headDimension, deterministic }).backward;
        const shape = [1, 1, 256, headDimension];
        const x = { address: 4096, dtype: 'bfloat16' as const, shape, strides: [0, 0, headDimension, 1] };
        const parts = chunk === 16 && headDimension === padded ? padded / chunk : 1;
        expect(headTensorMap(x, { rows: 64, chunk, wholeRows: true }).box).toEqual([chunk, 64, parts, 1, 1]);
      }
  });
});
