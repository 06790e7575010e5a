import { expect, it, vi } from 'vitest';
import { declaredParameters } from '../../../../../tooling/kernel-signatures.ts';

const made = vi.hoisted(() => [] as [source: URL, name: string, parameters: Record<string, string>][]);

vi.mock('@roofline/cuda', async (original) => {
  const cuda = await original<typeof import('@roofline/cuda')>();
  return {
    ...cuda,
    kernelVariants: (...all: Parameters<typeof cuda.kernelVariants>) => {
      made.push(all as unknown as (typeof made)[number]);
      return cuda.kernelVariants(...all);
    },
  };
});

await import('../../../src/index.ts');

it('finds the kernels of ops', () => {
  expect(made.length).toBeGreaterThan(25);
});

it.each(made)('%s declares the parameters of %s that it is launched with', (source, name, parameters) => {
  expect(Object.entries(declaredParameters(source, name))).toEqual(Object.entries(parameters));
});
