import { execFile, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { planSimt } from '../../../src/cuda/kernel-plan.ts';

const found = spawnSync('nvcc', ['--version']).status === 0;
const kernels = fileURLToPath(new URL('../../../kernels/', import.meta.url));
const core = fileURLToPath(new URL('../../../../tensor-core/kernels/', import.meta.url));
const types = { float32: 'float', float64: 'double', float16: 'float16', bfloat16: 'bfloat16' } as const;

describe.skipIf(!found)('flash_simt.cu compiles (needs nvcc)', () => {
  it.each([
    ['float32', 64, 80],
    ['float32', 256, 90],
    ['bfloat16', 128, 80],
    ['float16', 80, 90],
    ['float64', 256, 80],
  ] as const)(
    'for %s, head dimension %i and compute capability %i',
    async (dtype, headDimension, computeCapability) => {
      const plan = planSimt({
        kernels: 'simt',
        ...{ dtype, headDimension, computeCapability },
        ...{ batch: 1, heads: 4, keyHeads: 4, queries: 512, keys: 512 },
        ...{ causal: true, scale: 1, deterministic: false, float32Precision: 'highest' },
        ...{ multiprocessors: 108, maxSharedBytesPerBlock: 163 * 1024 },
      });
      for (const { queries, keys } of [plan.forward, plan.backward]) {
        const { stderr } = await promisify(execFile)('nvcc', [
          `-gencode=arch=compute_${computeCapability},code=sm_${computeCapability}`,
          ...['-std=c++17', '-cubin', '-Werror=all-warnings', '-o', '/dev/null', `-I${kernels}`, `-I${core}`],
          ...[`-DELEMENT=${types[dtype]}`, `-DHEAD_DIM=${plan.headDimension}`],
          ...[`-DBLOCK_M=${queries}`, `-DBLOCK_N=${keys}`, `${kernels}simt/flash_simt.cu`],
        ]);
        expect(stderr).toBe('');
      }
    },
  );
});
