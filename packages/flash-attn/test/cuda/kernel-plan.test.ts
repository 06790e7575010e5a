import type { DType } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { type KernelProblem, planKernels, planSimt } from '../../src/cuda/kernel-plan.ts';
import { hopperBackwardSharedBytes } from '../../src/cuda/hopper-backward.ts';
import { hopperForwardSharedBytes } from '../../src/cuda/hopper-forward.ts';
import { planHopper } from '../../src/cuda/hopper-plan.ts';

const problem: KernelProblem = {
  ...{ dtype: 'float32' as DType, kernels: 'simt' },
  ...{ batch: 1, heads: 16, keyHeads: 16, queries: 4096, keys: 4096, headDimension: 64 },
  ...{ causal: true, scale: 0.125, deterministic: false },
  ...{ computeCapability: 90, multiprocessors: 132, maxSharedBytesPerBlock: 227 * 1024 },
};

describe('planSimt', () => {
  it('takes the largest tiles of which shared memory has room', () => {
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
    expect(() => planSimt({ ...wide, maxSharedBytesPerBlock: 99 * 1024 })).toThrow(
      /float64 with head dimension 256 takes \d+ bytes.*has 101376 for a block; cast\(\) to float32/,
    );
  });
});

describe('planKernels', () => {
  const onHopper: KernelProblem = { ...problem, dtype: 'bfloat16', kernels: 'hopper' };
  const familyOf = (changes: Partial<KernelProblem>) => planKernels({ ...onHopper, ...changes }).family;

  it('takes the Hopper kernels for what they calculate', () => {
    for (const dtype of ['bfloat16', 'float16'] as const)
      for (const headDimension of [64, 80, 128]) expect(familyOf({ dtype, headDimension })).toBe('hopper');
    expect(familyOf({ queries: 1, keys: 77777, keyHeads: 4, causal: false })).toBe('hopper');
  });

  it('takes them only where they are asked for', () => {
    expect(familyOf({ kernels: 'simt' })).toBe('simt');
  });

  it.each([
    ['another GPU', { computeCapability: 89 }],
    ['a newer GPU, which lacks wgmma', { computeCapability: 100 }],
    ['float32', { dtype: 'float32' }],
    ['another head dimension', { headDimension: 96 }],
    ['a scale that is not above zero', { scale: -0.2 }],
    ['the same bits twice', { deterministic: true }],
    ['no queries', { queries: 0 }],
    ['no keys', { keys: 0 }],
    ['no batch', { batch: 0 }],
    ['more heads than a grid has rows', { batch: 4096 }],
  ] as const)('takes the kernels for every GPU for %s', (_, changes) => {
    expect(familyOf(changes)).toBe('simt');
  });
});

describe('planHopper', () => {
  const planOf = (changes: Partial<KernelProblem>) =>
    planHopper({ ...problem, dtype: 'bfloat16', ...changes })!;
  const tileOf = (changes: Partial<KernelProblem>) => {
    const { warpgroups, keys } = planOf(changes).forward;
    return [64 * warpgroups, keys];
  };

  it('takes small tiles where large ones do not fill the GPU twice', () => {
    expect(tileOf({})).toEqual([64, 64]);
    expect(tileOf({ batch: 4, heads: 12, keyHeads: 12, queries: 512 })).toEqual([64, 64]);
    expect(tileOf({ batch: 8, queries: 1024 })).toEqual([256, 64]);
    expect(tileOf({ queries: 16384 })).toEqual([256, 64]);
  });

  it('takes the tiles that are fastest for a head dimension', () => {
    expect(tileOf({ headDimension: 128 })).toEqual([128, 128]);
    expect(tileOf({ headDimension: 80, queries: 1024 })).toEqual([128, 128]);
    expect(tileOf({ headDimension: 80 })).toEqual([192, 96]);
    expect(tileOf({ headDimension: 80, causal: false })).toEqual([256, 48]);
    expect(planOf({ headDimension: 128 }).backward.queries).toBe(64);
  });

  it('takes heads together in even bands, never less than one', () => {
    const { forwardBand, backwardBand } = planOf({ headDimension: 128, queries: 16384, keys: 16384 });
    expect([forwardBand, backwardBand]).toEqual([2, 4]);
    const long = planOf({ queries: 2 ** 20, keys: 2 ** 20 });
    expect([long.forwardBand, long.backwardBand]).toEqual([1, 1]);
    expect(planOf({ keyHeads: 4, heads: 16, queries: 16384, keys: 16384 }).forwardBand).toBe(16);
  });

  it('fits the shared memory of its GPU, as often a multiprocessor as it says', () => {
    for (const headDimension of [64, 80, 128])
      for (const causal of [true, false])
        for (const queries of [64, 512, 4096, 65536]) {
          const { forward, backward } = planOf({ headDimension, causal, queries });
          const bytes = hopperForwardSharedBytes(forward, headDimension);
          expect(bytes).toBeLessThanOrEqual(227 * 1024);
          // A block takes 1 KiB more of the 228.
          expect((bytes + 1024) * forward.blocksPerMultiprocessor).toBeLessThanOrEqual(228 * 1024);
          expect(hopperBackwardSharedBytes(backward, headDimension)).toBeLessThanOrEqual(227 * 1024);
          const { consumerRegisters, producerRegisters, warpgroups } = forward;
          const registers = 128 * (warpgroups * consumerRegisters + producerRegisters);
          expect(registers * forward.blocksPerMultiprocessor).toBeLessThanOrEqual(65536);
        }
  });
});
