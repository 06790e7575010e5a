import { readFileSync } from 'node:fs';
import type { Definitions, KernelVariant } from '../../../../tooling/nvcc.ts';

export const kernels = new URL('../../kernels/', import.meta.url);

/** A file below kernels/ under definitions. */
export function variantOf(file: string, defines: Definitions): KernelVariant {
  return { source: readFileSync(new URL(file, kernels), 'utf8'), defines };
}

/** Each set of definitions once. */
export function distinct(all: readonly Definitions[]): Definitions[] {
  return [...new Map(all.map((defines) => [JSON.stringify(defines), defines])).values()];
}
