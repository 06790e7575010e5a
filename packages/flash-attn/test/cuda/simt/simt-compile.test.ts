import { describe, expect, it } from 'vitest';
import { compileByNvcc, foundNvcc } from '../../../../../tooling/nvcc.ts';
import { planSimt } from '../../../src/cuda/kernel-plan.ts';
import { kernels, variantOf } from '../nvcc.ts';

const types = { float32: 'float', float64: 'double', float16: 'float16', bfloat16: 'bfloat16' } as const;

describe.skipIf(!foundNvcc)('flash_simt.cu compiles (needs nvcc)', () => {
  it.each([
    [
      80,
      [
        ['float32', 64],
        ['bfloat16', 128],
        ['float64', 256],
      ],
    ],
    [
      90,
      [
        ['float32', 256],
        ['float16', 80],
      ],
    ],
  ] as const)('for compute capability %i', async (computeCapability, problems) => {
    const variants = problems.flatMap(([dtype, headDimension]) => {
      const plan = planSimt({
        kernels: 'simt',
        ...{ dtype, headDimension, computeCapability },
        ...{ batch: 1, heads: 4, keyHeads: 4, queries: 512, keys: 512 },
        ...{ causal: true, scale: 1, deterministic: false, float32Precision: 'highest' },
        ...{ multiprocessors: 108, maxSharedBytesPerBlock: 163 * 1024 },
      });
      return [plan.forward, plan.backward].map(({ queries, keys }) =>
        variantOf('simt/flash_simt.cu', {
          ...{ ELEMENT: types[dtype], HEAD_DIM: plan.headDimension },
          ...{ BLOCK_M: queries, BLOCK_N: keys },
        }),
      );
    });
    expect(await compileByNvcc(String(computeCapability), variants, { kernels: [kernels] })).toBe('');
  });
});
