import type { CompileOptions, Device } from '../../src/index.ts';

/**
 * Every other random program runs beside others whatever can; these are too small to be chosen for it. Of those for a GPU every third has a
 * budget of memory with room to keep what it makes twice.
 */
export function optionsOf({ seed }: { readonly seed: number }, { type }: Device): CompileOptions {
  const branches = seed % 2 === 0 ? 'always' : 'never';
  return type === 'cuda' && seed % 3 === 0 ? { branches, memoryBudget: '1GiB' } : { branches };
}
