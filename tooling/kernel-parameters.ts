import { readFileSync } from 'node:fs';
import { expect, it, vi } from 'vitest';
import { declaredParameters } from '../packages/cuda/src/launch/declared-parameters.ts';

type Kernel = [source: URL, name: string, parameters: Record<string, string>];

/**
 * Tests that each kernel of a package, of which there are more than `least`, is launched with the parameters that its source
 * declares: names and types, in their order; of other types, structures. `load` imports the package.
 */
export async function testKernelParameters(load: () => Promise<unknown>, least: number): Promise<void> {
  const made: Kernel[] = [];
  vi.doMock('../packages/cuda/src/index.ts', async (original) => {
    const cuda = await original<typeof import('../packages/cuda/src/index.ts')>();
    return {
      ...cuda,
      kernelVariants: (...all: Parameters<typeof cuda.kernelVariants>) => {
        made.push(all as unknown as Kernel);
        return cuda.kernelVariants(...all);
      },
    };
  });
  await load();

  it('finds the kernels of this package', () => expect(made.length).toBeGreaterThan(least));

  it.each(made)('%s declares the parameters of %s that it is launched with', (source, name, parameters) => {
    const declared = declaredParameters(readFileSync(source, 'utf8'), name) ?? [];
    expect(declared.map((each) => [each.name, each.type ?? 'struct'])).toEqual(Object.entries(parameters));
  });
}
