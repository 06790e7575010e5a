import type { DType } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { compileByNvcc, foundNvcc } from '../../../../../tooling/nvcc.ts';
import type { KernelProblem } from '../../../src/cuda/kernel-problem.ts';
import {
  mmaBackwardDefines,
  mmaForwardDefines,
  mmaJoinDefines,
  mmaRowsDefines,
} from '../../../src/cuda/mma/mma-kernels.ts';
import { planMmaBackward, planMmaForward } from '../../../src/cuda/mma/mma-plan.ts';
import { kernels, variantOf } from '../nvcc.ts';

/** GPUs whose shared memory differs, and with it the tiles. */
const gpus = [
  { architecture: '80', computeCapability: 80, multiprocessors: 108, maxSharedBytesPerBlock: 163 * 1024 },
  { architecture: '86', computeCapability: 86, multiprocessors: 82, maxSharedBytesPerBlock: 99 * 1024 },
  { architecture: '90a', computeCapability: 90, multiprocessors: 132, maxSharedBytesPerBlock: 227 * 1024 },
  { architecture: '120', computeCapability: 120, multiprocessors: 170, maxSharedBytesPerBlock: 99 * 1024 },
];

const problems: readonly Partial<KernelProblem>[] = [
  { dtype: 'bfloat16', headDimension: 128, queries: 16384, keys: 16384, deterministic: true },
  { dtype: 'float32', headDimension: 64, queries: 16384, keys: 16384 },
  { dtype: 'float32', headDimension: 256, queries: 100, keys: 3000 },
  { dtype: 'bfloat16', headDimension: 64, queries: 16384, keys: 16384 },
  { dtype: 'float16', headDimension: 80, queries: 100, keys: 100 },
  { dtype: 'bfloat16', headDimension: 256, queries: 16384, keys: 16384 },
  { dtype: 'float32', headDimension: 128, queries: 512, keys: 512 },
  { dtype: 'float32', headDimension: 16, queries: 512, keys: 512, float32Precision: 'high' },
];

/** All problems on one GPU, and on the others those whose tiles are the largest. */
const cases = gpus.map(({ architecture, ...gpu }, i) => {
  const variants = problems.slice(0, i === 0 ? problems.length : 3).flatMap((changes) => {
    const problem: KernelProblem = {
      ...{ kernels: 'mma', dtype: 'bfloat16' as DType, deterministic: false, float32Precision: 'highest' },
      ...{ batch: 1, heads: 16, keyHeads: 16, queries: 1, keys: 1, headDimension: 64 },
      ...{ causal: true, scale: 0.125 },
      ...gpu,
      ...changes,
    };
    const { forward } = planMmaForward(problem)!;
    const { backward, deterministic } = planMmaBackward(problem)!;
    return [
      variantOf('mma/flash_mma_forward.cu', mmaForwardDefines(problem, forward)),
      variantOf('mma/flash_mma_backward.cu', mmaBackwardDefines(problem, backward, deterministic)),
      variantOf('mma/flash_mma_rows.cu', mmaRowsDefines(problem, backward)),
      variantOf('mma/flash_mma_join.cu', mmaJoinDefines(problem, forward)),
    ];
  });
  return [architecture, variants] as const;
});

describe.skipIf(!foundNvcc)('the tensor-core kernels of every GPU compile (needs nvcc)', () => {
  it.each(cases)('for sm_%s', async (architecture, variants) => {
    expect(await compileByNvcc(architecture, variants, { kernels: [kernels], large: true })).toBe('');
  });
});
