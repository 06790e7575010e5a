import type { DType } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import type { KernelProblem } from '../../../src/cuda/kernel-problem.ts';
import {
  mmaAfterSharedBytes,
  mmaBackwardSharedBytes,
  mmaForwardSharedBytes,
  planMmaBackward,
  planMmaForward,
} from '../../../src/cuda/mma/mma-plan.ts';

const problem: KernelProblem = {
  ...{ dtype: 'bfloat16' as DType, kernels: 'mma' },
  ...{ batch: 1, heads: 16, keyHeads: 16, queries: 4096, keys: 4096, headDimension: 64 },
  ...{ causal: true, scale: 0.125, deterministic: false, float32Precision: 'highest' },
  ...{ computeCapability: 80, multiprocessors: 108, maxSharedBytesPerBlock: 163 * 1024 },
};

const gpus = [
  { computeCapability: 80, multiprocessors: 108, maxSharedBytesPerBlock: 163 * 1024 },
  { computeCapability: 86, multiprocessors: 82, maxSharedBytesPerBlock: 99 * 1024 },
  { computeCapability: 90, multiprocessors: 132, maxSharedBytesPerBlock: 227 * 1024 },
  { computeCapability: 120, multiprocessors: 170, maxSharedBytesPerBlock: 99 * 1024 },
];

const dtypes = ['bfloat16', 'float16', 'float32'] as const;
const bytesOf = (dtype: DType) => (dtype === 'float32' ? 4 : 2);
const lengths = [1, 300, 65536];

describe.each(gpus)('on compute capability $computeCapability', (gpu) => {
  const forwardOf = (changes: Partial<KernelProblem>) => planMmaForward({ ...problem, ...gpu, ...changes });
  const backwardOf = (changes: Partial<KernelProblem>) => planMmaBackward({ ...problem, ...gpu, ...changes });

  it.each(dtypes)('%s of every head dimension and length fits into shared memory', (dtype) => {
    const room = gpu.maxSharedBytesPerBlock + 1024;
    for (let headDimension = 1; headDimension <= 256; headDimension++)
      for (const length of lengths) {
        const sizes = { dtype, headDimension, queries: length, keys: length };
        const forward = forwardOf(sizes)!.forward;
        const bytes = mmaForwardSharedBytes(forward, bytesOf(dtype));
        expect((bytes + 1024) * forward.blocksPerMultiprocessor).toBeLessThanOrEqual(room);
        expect(forward.headDimension - headDimension).toBeLessThan(16);
        const backward = backwardOf(sizes)!.backward;
        const backwardBytes = mmaBackwardSharedBytes(backward, bytesOf(dtype));
        expect((backwardBytes + 1024) * backward.blocksPerMultiprocessor).toBeLessThanOrEqual(room);
        expect(mmaAfterSharedBytes(backward, bytesOf(dtype))).toBeLessThanOrEqual(room - 1024);
        expect(backward.headDimension).toBeGreaterThanOrEqual(headDimension);
      }
  });

  it.each(dtypes)('%s has tiles as the kernels take them', (dtype) => {
    for (const headDimension of [16, 64, 80, 128, 144, 256])
      for (const length of lengths) {
        const sizes = { dtype, headDimension, queries: length, keys: length };
        const { queries, keys, warps, blocksPerMultiprocessor } = forwardOf(sizes)!.forward;
        expect([queries % (16 * warps), keys % 16]).toEqual([0, 0]);
        expect(blocksPerMultiprocessor).toBeGreaterThanOrEqual(1);
        const { backward } = backwardOf(sizes)!;
        expect([backward.queries % 16, (16 * backward.warps) % backward.queries]).toEqual([0, 0]);
        expect(backward.keys).toBe(16 * backward.warps);
        expect(backward.headDimension % (16 * backward.parts)).toBe(0);
        // 255 registers a thread, of 65536 a multiprocessor, at least 128 where several blocks share one.
        for (const tile of [forwardOf(sizes)!.forward, backward])
          expect(32 * tile.warps * tile.blocksPerMultiprocessor * 128).toBeLessThanOrEqual(65536);
      }
  });

  it('takes the same tiles of float32 for all lengths, but for the largest head dimensions', () => {
    for (const headDimension of [16, 64, 128]) {
      const tilesOf = (length: number) => {
        const sizes = { dtype: 'float32' as const, headDimension, queries: length, keys: length };
        const { splits: _, ...forward } = forwardOf(sizes)!.forward;
        return [forward, backwardOf(sizes)!.backward];
      };
      expect(tilesOf(128)).toEqual(tilesOf(65536));
      expect(tilesOf(128)[0]!.warps).toBe(4);
    }
  });

  it('takes smaller tiles where large ones leave multiprocessors idle', () => {
    const long = forwardOf({})!.forward;
    const short = forwardOf({ heads: 1, keyHeads: 1, queries: 64, keys: 64 })!.forward;
    expect(short.queries).toBeLessThan(long.queries);
    expect(backwardOf({ heads: 1, keyHeads: 1, queries: 64, keys: 64 })!.backward.keys).toBeLessThan(
      backwardOf({ queries: 16384, keys: 16384 })!.backward.keys,
    );
  });
});

describe('planMmaForward', () => {
  const splitsOf = (changes: Partial<KernelProblem>) =>
    planMmaForward({ ...problem, ...changes })!.forward.splits;

  it('shares long keys among the multiprocessors that queries leave idle', () => {
    const one = { heads: 1, keyHeads: 1, queries: 1, causal: false };
    expect(splitsOf({ ...one, keys: 77777 })).toBe(32);
    // 4 tiles of 64 keys each.
    expect(splitsOf({ ...one, keys: 600 })).toBe(2);
    expect(splitsOf({ ...one, keys: 300 })).toBe(1);
    expect(splitsOf({ ...one, queries: 0 })).toBe(1);
  });

  it('leaves them together where queries fill the GPU', () => {
    expect(splitsOf({ queries: 16384, keys: 16384 })).toBe(1);
    expect(splitsOf({ batch: 108, heads: 1, keyHeads: 1, queries: 1, keys: 77777 })).toBe(1);
  });
});

describe('planMmaForward and planMmaBackward', () => {
  it('multiply float32 to the accuracy that is set', () => {
    const productsOf = (changes: Partial<KernelProblem>) => [
      planMmaForward({ ...problem, ...changes })!.forward.products,
      planMmaBackward({ ...problem, ...changes })!.backward.products,
    ];
    expect(productsOf({ dtype: 'float32' })).toEqual([3, 3]);
    expect(productsOf({ dtype: 'float32', float32Precision: 'high' })).toEqual([1, 1]);
    expect(productsOf({ float32Precision: 'high' })).toEqual([1, 1]);
  });

  it('add in order where they must', () => {
    expect(planMmaBackward({ ...problem, deterministic: true })!.deterministic).toBe(true);
    expect(planMmaBackward(problem)!.deterministic).toBe(false);
  });

  it('leave what no grid has blocks for', () => {
    for (const sizes of [
      { batch: 2 ** 20, queries: 2 ** 20 },
      { batch: 1, heads: 1, keyHeads: 1, queries: 1, keys: 2 ** 31 },
      { batch: 1, heads: 1, keyHeads: 1, queries: 2 ** 31, keys: 1 },
    ]) {
      const many = { ...problem, ...sizes };
      expect([planMmaForward(many), planMmaBackward(many)]).toEqual([null, null]);
    }
    const most = { ...problem, batch: 1, heads: 1, keyHeads: 1, queries: 1, keys: 2 ** 31 - 1 };
    expect([planMmaForward(most), planMmaBackward(most)]).not.toContain(null);
  });

  it('leave a scale that float32 has as zero, times log₂ e, whatever float64 has', () => {
    const plansOf = (scale: number) => [
      planMmaForward({ ...problem, scale }),
      planMmaBackward({ ...problem, scale }),
    ];
    for (const scale of [0, -0, 1e-46, -1e-46]) expect(plansOf(scale)).toEqual([null, null]);
    for (const scale of [2 ** -149, -1e-44, 1]) expect(plansOf(scale)).not.toContain(null);
  });
});
