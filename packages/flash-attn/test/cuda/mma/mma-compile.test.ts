import { execFile, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { DType } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import type { KernelProblem } from '../../../src/cuda/kernel-plan.ts';
import {
  mmaBackwardDefines,
  mmaForwardDefines,
  mmaJoinDefines,
  mmaRowsDefines,
} from '../../../src/cuda/mma/mma-kernels.ts';
import { planMmaBackward, planMmaForward } from '../../../src/cuda/mma/mma-plan.ts';

const found = spawnSync('nvcc', ['--version']).status === 0;
const kernels = fileURLToPath(new URL('../../../kernels/', import.meta.url));
const core = fileURLToPath(new URL('../../../../tensor-core/kernels/', import.meta.url));

type Defines = Record<string, string | number>;

async function compile(architecture: string, file: string, defines: Defines): Promise<string> {
  const macros = Object.entries(defines).map(([name, value]) => `-D${name}=${value}`);
  const { stderr } = await promisify(execFile)('nvcc', [
    ...[`-gencode=arch=compute_${architecture},code=sm_${architecture}`, '-std=c++17', '-cubin'],
    ...['-Werror=all-warnings', '-o', '/dev/null', `-I${kernels}`, `-I${core}`, ...macros],
    `${kernels}${file}`,
  ]);
  return stderr;
}

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
const cases = gpus.flatMap(({ architecture, ...gpu }, i) =>
  problems.slice(0, i === 0 ? problems.length : 3).map((changes) => {
    const problem: KernelProblem = {
      ...{ kernels: 'mma', dtype: 'bfloat16' as DType, deterministic: false, float32Precision: 'highest' },
      ...{ batch: 1, heads: 16, keyHeads: 16, queries: 1, keys: 1, headDimension: 64 },
      ...{ causal: true, scale: 0.125 },
      ...gpu,
      ...changes,
    };
    const { dtype, headDimension, queries } = problem;
    return [`${dtype} d${headDimension} n${queries} on sm_${architecture}`, architecture, problem] as const;
  }),
);

describe.skipIf(!found)('the tensor-core kernels of every GPU compile (needs nvcc)', () => {
  it.each(cases)('%s', async (_, architecture, problem) => {
    const { forward } = planMmaForward(problem)!;
    const { backward, deterministic } = planMmaBackward(problem)!;
    const reports = [
      await compile(architecture, 'mma/flash_mma_forward.cu', mmaForwardDefines(problem, forward)),
      await compile(
        architecture,
        'mma/flash_mma_backward.cu',
        mmaBackwardDefines(problem, backward, deterministic),
      ),
      await compile(architecture, 'mma/flash_mma_rows.cu', mmaRowsDefines(problem, backward)),
      await compile(architecture, 'mma/flash_mma_join.cu', mmaJoinDefines(problem, forward)),
    ];
    expect(reports).toEqual(['', '', '', '']);
  });
});
