import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { compileByNvcc, foundNvcc, spilledBytes } from '../../../../tooling/nvcc.ts';

const kernels = new URL('../../kernels/', import.meta.url);
const source = readFileSync(new URL('two_shot_all_reduce.cu', kernels), 'utf8');

it.skipIf(!foundNvcc).each(['80', '90'])(
  'two_shot_all_reduce compiles for compute capability %s without spilling (needs nvcc)',
  async (capability) => {
    const report = await compileByNvcc(capability, [{ source, defines: {} }], {
      kernels: [kernels],
      optimized: true,
    });
    expect(spilledBytes(report, 1)).toEqual([0]);
  },
);
