import { type DType, DeviceError } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { planBackward, planForward, planSimt } from '../../src/cuda/kernel-plan.ts';
import type { KernelProblem } from '../../src/cuda/kernel-problem.ts';

const problem: KernelProblem = {
  ...{ dtype: 'float32' as DType, kernels: 'auto' },
  ...{ batch: 1, heads: 16, keyHeads: 16, queries: 4096, keys: 4096, headDimension: 64 },
  ...{ causal: true, scale: 0.125, deterministic: false, float32Precision: 'highest' },
  ...{ computeCapability: 90, multiprocessors: 132, maxSharedBytesPerBlock: 227 * 1024 },
};

describe('planSimt', () => {
  it('takes the largest tiles that shared memory has room for', () => {
    const { forward, backward } = planSimt(problem);
    expect(forward).toEqual({ queries: 64, keys: 64, sharedBytes: 4 * (128 * 68 + 64 * 68) });
    expect(backward).toEqual({ queries: 64, keys: 64, sharedBytes: 4 * (256 * 68 + 64 * 68) });
    const wide = planSimt({ ...problem, headDimension: 256 });
    expect([wide.forward.queries, wide.backward.queries]).toEqual([32, 16]);
    expect(planSimt({ ...problem, headDimension: 256, dtype: 'float64' }).forward.queries).toBe(16);
  });

  it('takes no larger tiles than short sequences fill', () => {
    const tileOf = (queries: number, keys: number) => planSimt({ ...problem, queries, keys }).forward.queries;
    expect([tileOf(1, 1), tileOf(16, 16), tileOf(17, 17), tileOf(1, 33), tileOf(0, 0)]).toEqual([
      16, 16, 32, 64, 16,
    ]);
  });

  it('pads the head dimension to a multiple of 16', () => {
    const padded = (headDimension: number) => planSimt({ ...problem, headDimension }).headDimension;
    expect([1, 16, 40, 80, 256].map(padded)).toEqual([16, 16, 48, 80, 256]);
  });

  it.each(['float32', 'float16', 'bfloat16'] as const)('fits every GPU in %s', (dtype) => {
    for (let headDimension = 1; headDimension <= 256; headDimension++) {
      const { forward, backward } = planSimt({ ...problem, dtype, headDimension });
      for (const { sharedBytes, queries } of [forward, backward]) {
        // 99 KiB, of compute capability 8.6.
        expect(sharedBytes).toBeLessThanOrEqual(99 * 1024);
        expect(queries).toBeGreaterThanOrEqual(16);
      }
    }
  });

  it('refuses what a GPU has no shared memory for', () => {
    const wide = { ...problem, dtype: 'float64' as const, headDimension: 256 };
    expect(planSimt(wide).backward.queries).toBe(16);
    const { sharedBytes } = planSimt(wide).backward;
    expect(planSimt({ ...wide, maxSharedBytesPerBlock: sharedBytes }).backward.sharedBytes).toBe(sharedBytes);
    expect(() => planSimt({ ...wide, maxSharedBytesPerBlock: sharedBytes - 1 })).toThrow(DeviceError);
    expect(() => planSimt({ ...wide, maxSharedBytesPerBlock: 99 * 1024 })).toThrow(
      /float64 with head dimension 256 takes \d+ bytes.*has 101376 for a block; cast\(\) to float32/,
    );
  });
});

describe('the family of kernels', () => {
  const onHopper: KernelProblem = { ...problem, dtype: 'bfloat16', kernels: 'auto' };
  const familiesOf = (changes: Partial<KernelProblem>) =>
    [planForward, planBackward].map((plan) => plan({ ...onHopper, ...changes }).family);

  it("is Hopper's own for what it calculates", () => {
    for (const dtype of ['bfloat16', 'float16'] as const)
      for (const headDimension of [8, 16, 64, 80, 96, 104, 128])
        expect(familiesOf({ dtype, headDimension })).toEqual(['hopper', 'hopper']);
    expect(familiesOf({ queries: 1, keys: 77777, keyHeads: 4, causal: false })).toEqual(['hopper', 'hopper']);
    expect(familiesOf({ deterministic: true })).toEqual(['hopper', 'hopper']);
  });

  it('is the one that was asked for', () => {
    expect(familiesOf({ kernels: 'mma' })).toEqual(['mma', 'mma']);
    expect(familiesOf({ kernels: 'simt' })).toEqual(['simt', 'simt']);
  });

  it.each([
    ['a head dimension of sums that backward has no registers for', { headDimension: 256 }, 'hopper', 'mma'],
    ['more heads than a grid of the backward pass has rows', { batch: 4096 }, 'hopper', 'mma'],
    ['a scale below zero', { scale: -0.2 }, 'mma', 'hopper'],
    ['a scale of zero', { scale: 0 }, 'simt', 'hopper'],
    ['a scale that float32 has as zero', { scale: 1e-50 }, 'simt', 'hopper'],
  ] as const)('differs between the directions for %s', (_, changes, forward, backward) => {
    expect(familiesOf(changes)).toEqual([forward, backward]);
  });

  it.each([
    ['another GPU', { computeCapability: 89 }],
    ['a newer GPU, which lacks wgmma', { computeCapability: 100 }],
    ['float32', { dtype: 'float32' }],
    ['a head dimension whose rows TMA cannot read', { headDimension: 20 }],
    ['no queries', { queries: 0 }],
    ['no keys', { keys: 0 }],
    ['no batch', { batch: 0 }],
  ] as const)('is that of every tensor core for %s', (_, changes) => {
    expect(familiesOf(changes)).toEqual(['mma', 'mma']);
  });

  it.each([
    ['float64', { dtype: 'float64' }],
    ['one that float32 has as zero', { kernels: 'mma', scale: 1e-50 }],
    ['a GPU without tensor cores for bfloat16', { computeCapability: 75 }],
    ['more tiles than 32 bits count', { batch: 2 ** 22, queries: 2 ** 12 }],
  ] as const)('is that of ordinary multiply-adds for %s', (_, changes) => {
    expect(familiesOf(changes)).toEqual(['simt', 'simt']);
  });
});
