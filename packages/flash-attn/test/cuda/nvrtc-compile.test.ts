import type { DType } from '@roofline/tensor-core';
import { compileByNvrtc, nvrtcVersion } from '@roofline/cuda/testing';
import { describe, expect, it } from 'vitest';
import type { KernelProblem } from '../../src/cuda/kernel-problem.ts';
import { problemKernels } from '../../src/cuda/problem-kernels.ts';

const hopper = { computeCapability: 90, multiprocessors: 132, maxSharedBytesPerBlock: 227 * 1024 };

/** What `roofline flash` measures on a Hopper GPU, and what else differs in its kernels. */
const problems: readonly KernelProblem[] = (['bfloat16', 'float32'] as readonly DType[]).flatMap((dtype) =>
  [16, 32, 64, 80, 128, 256].flatMap((headDimension) =>
    Array.from({ length: 10 }, (_, i) => 128 * 2 ** i).flatMap((length) =>
      [false, true].map((deterministic) => ({
        ...{ kernels: 'auto' as const, dtype, deterministic, float32Precision: 'highest' as const },
        ...{ batch: 1, heads: 1, keyHeads: 1, queries: length, keys: length, headDimension },
        ...{ causal: true, scale: 0.125 },
        ...hopper,
      })),
    ),
  ),
);

const kernels = new Map(
  problems.flatMap(problemKernels).map(({ source, defines = {} }) => {
    const file = source.pathname.slice(source.pathname.lastIndexOf('/') + 1);
    return [`${file} ${Object.values(defines).join(' ')}`, { source, defines }] as const;
  }),
);

describe.skipIf(nvrtcVersion() === null)('what a sweep runs compiles by NVRTC (needs libnvrtc)', () => {
  it.each([...kernels])('%s', (_, { source, defines }) => {
    const image = compileByNvrtc(source, defines, 'sm_90a');
    expect([...image.subarray(1, 4)]).toEqual([...Buffer.from('ELF')]);
  });
});
