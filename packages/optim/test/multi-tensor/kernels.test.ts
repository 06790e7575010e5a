import { readFileSync, readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import { type Definitions, compileByNvcc, foundNvcc } from '../../../../tooling/nvcc.ts';

const kernels = new URL('../../kernels/', import.meta.url);
/** Those that update parameters write copies of them too. */
const copies: readonly Definitions[] = [{}, { COPY: 'float16' }, { COPY: 'bfloat16' }];
const variants = readdirSync(kernels)
  .filter((file) => file.endsWith('.cu'))
  .flatMap((file) => {
    const source = readFileSync(new URL(file, kernels), 'utf8');
    return (source.includes('kCopies') ? copies : [{}]).map((defines) => ({ source, defines }));
  });

it.skipIf(!foundNvcc).each(['80', '90'])(
  'kernels compile for compute capability %s (needs nvcc)',
  async (capability) => {
    expect(variants).toHaveLength(11 + 3 * 2);
    expect(await compileByNvcc(capability, variants, { kernels: [kernels] })).toBe('');
  },
);
