import type { CompileOptions } from '../../src/index.ts';

/** Every other random program runs beside others whatever can; these are too small to be chosen for it. */
export function branchesOf({ seed }: { readonly seed: number }): Pick<CompileOptions, 'branches'> {
  return { branches: seed % 2 === 0 ? 'always' : 'never' };
}
