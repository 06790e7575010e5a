import { expect } from 'vitest';
import { type Definitions, compileByNvcc, spilledBytes } from '../../../../../tooling/nvcc.ts';
import { kernels, variantOf } from '../nvcc.ts';

/** As many as the optimizer takes at a time without another file's waiting long. */
const mostTogether = 12;

/** Variants that are compiled together, as a table of tests has them. */
export function groupsOf(all: readonly Definitions[]): [string, readonly Definitions[]][] {
  const count = Math.ceil(all.length / mostTogether);
  return Array.from({ length: count }, (_, i) => [
    `${i + 1} of ${count}`,
    all.slice(i * mostTogether, (i + 1) * mostTogether),
  ]);
}

/** Compiles them as the GPU runs them: no register may spill, and no products be serialised (C75xx), which halves their speed. */
export async function expectNoSpills(file: string, variants: readonly Definitions[]): Promise<void> {
  const report = await compileByNvcc(
    '90a',
    variants.map((defines) => variantOf(file, defines)),
    { kernels: [kernels], optimized: true },
  );
  expect(report).not.toMatch(/C75\d\d/);
  const spills = spilledBytes(report, variants.length);
  expect(variants.map((defines, i) => [defines, spills[i]])).toEqual(variants.map((defines) => [defines, 0]));
}
