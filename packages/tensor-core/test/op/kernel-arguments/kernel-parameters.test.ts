import { expect, it, vi } from 'vitest';
import { declaredParameters } from '../../../../../tooling/kernel-signatures.ts';
import { kernelSource } from '../../../src/base/host/package-root.ts';

const made = vi.hoisted(() => [] as [source: string, name: string, parameters: Record<string, string>][]);

vi.mock('../../../src/op/kernel-arguments/kernel-variants.ts', async (original) => {
  const { kernelVariants } =
    await original<typeof import('../../../src/op/kernel-arguments/kernel-variants.ts')>();
  return {
    kernelVariants: (...all: Parameters<typeof kernelVariants>) => {
      made.push(all as (typeof made)[number]);
      return kernelVariants(...all);
    },
  };
});

await import('../../../src/index.ts');

it('finds the kernels of ops', () => {
  expect(made.length).toBeGreaterThan(25);
});

it.each(made)('%s declares the parameters of %s that it is launched with', (source, name, parameters) => {
  expect(Object.entries(declaredParameters(kernelSource(source), name))).toEqual(Object.entries(parameters));
});
