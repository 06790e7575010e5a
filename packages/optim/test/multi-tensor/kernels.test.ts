import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { type Definitions, compileByNvcc, foundNvcc } from '../../../../tooling/nvcc.ts';

const source = readFileSync(new URL('../../kernels/multi_tensor.cu', import.meta.url), 'utf8');
const copies: readonly Definitions[] = [{}, { COPY: 'float16' }, { COPY: 'bfloat16' }];
const variants = copies.map((defines) => ({ source, defines }));

it.skipIf(!foundNvcc).each(['80', '90'])(
  'multi_tensor.cu compiles for compute capability %s (needs nvcc)',
  async (capability) => {
    expect(await compileByNvcc(capability, variants)).toBe('');
  },
);
