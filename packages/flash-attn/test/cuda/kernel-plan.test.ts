import type { DType } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { planKernels } from '../../src/cuda/kernel-plan.ts';

const problem = {
  dtype: 'float32' as DType,
  headDimension: 64,
  queries: 4096,
  keys: 4096,
  computeCapability: 90,
  maxSharedBytesPerBlock: 227 * 1024,
};

describe('planKernels', () => {
  it('takes the largest tiles of which shared memory has room', () => {
    const { forward, backward } = planKernels(problem);
    expect(forward).toEqual({ queries: 64, keys: 64, sharedBytes: 4 * (128 * 68 + 64 * 68) });
    expect(backward).toEqual({ queries: 64, keys: 64, sharedBytes: 4 * (256 * 68 + 64 * 68) });
    const wide = planKernels({ ...problem, headDimension: 256 });
    expect([wide.forward.queries, wide.backward.queries]).toEqual([32, 16]);
    expect(planKernels({ ...problem, headDimension: 256, dtype: 'float64' }).forward.queries).toBe(16);
  });

  it('takes no larger tiles than short sequences fill', () => {
    const tileOf = (queries: number, keys: number) =>
      planKernels({ ...problem, queries, keys }).forward.queries;
    expect([tileOf(1, 1), tileOf(16, 16), tileOf(17, 17), tileOf(1, 33), tileOf(0, 0)]).toEqual([
      16, 16, 32, 64, 16,
    ]);
  });

  it('pads the head dimension to a multiple of 16', () => {
    const padded = (headDimension: number) => planKernels({ ...problem, headDimension }).headDimension;
    expect([1, 16, 40, 80, 256].map(padded)).toEqual([16, 16, 48, 80, 256]);
  });

  it.each(['float32', 'float16', 'bfloat16'] as const)('fits every GPU in %s', (dtype) => {
    for (let headDimension = 1; headDimension <= 256; headDimension++) {
      const { forward, backward } = planKernels({ ...problem, dtype, headDimension });
      for (const { sharedBytes, queries } of [forward, backward]) {
        // 99 KiB, of compute capability 8.6.
        expect(sharedBytes).toBeLessThanOrEqual(99 * 1024);
        expect(queries).toBeGreaterThanOrEqual(16);
      }
    }
  });

  it('refuses what a GPU has no shared memory for', () => {
    const wide = { ...problem, dtype: 'float64' as const, headDimension: 256 };
    expect(planKernels(wide).backward.queries).toBe(16);
    expect(() => planKernels({ ...wide, maxSharedBytesPerBlock: 99 * 1024 })).toThrow(
      /float64 with head dimension 256 takes \d+ bytes.*has 101376 for a block; cast\(\) to float32/,
    );
  });
});
