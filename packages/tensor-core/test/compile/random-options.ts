import type { CompileOptions, Device } from '../../src/index.ts';

/**
 * Every other random program puts all calls that may on a branch: programs of this size would get none otherwise. On a GPU every third
 * one has a memory budget, with room to keep what the program makes twice.
 */
export function optionsOf({ seed }: { readonly seed: number }, { type }: Device): CompileOptions {
  const branches = seed % 2 === 0 ? 'always' : 'never';
  return type === 'cuda' && seed % 3 === 0 ? { branches, memoryBudget: '1GiB' } : { branches };
}
