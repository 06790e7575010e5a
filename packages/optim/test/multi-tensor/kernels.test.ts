import { readFileSync, readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import { type Definitions, compileByNvcc, foundNvcc, spilledBytes } from '../../../../tooling/nvcc.ts';

const kernels = new URL('../../kernels/', import.meta.url);
/** Those that update parameters write copies of them too. */
const copies: readonly Definitions[] = [{}, { COPY: 'float16' }, { COPY: 'bfloat16' }];
const variants = readdirSync(kernels)
  .filter((file) => file.endsWith('.cu') && file !== 'adamw_product.cu')
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

it.skipIf(!foundNvcc)(
  'the kernel of AdamW that multiplies compiles for Hopper without spilling (needs nvcc)',
  async () => {
    const source = readFileSync(new URL('adamw_product.cu', kernels), 'utf8');
    const all = ['float16', 'bfloat16'].flatMap((ELEMENT) =>
      copies.map((copy) => ({ source, defines: { ELEMENT, ...copy } })),
    );
    const report = await compileByNvcc('90a', all, { kernels: [kernels], optimized: true });
    expect(spilledBytes(report, all.length)).toEqual(all.map(() => 0));
  },
);
