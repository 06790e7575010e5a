import { basename } from 'node:path';
import { codeFolder, packageFolder } from './package-kernels.ts';

/** The folder of this package. */
export const packageRoot = packageFolder(import.meta.url);

/** Where its code lies. */
export const cudaCode = codeFolder(import.meta.url);

/** A CUDA source file of this package. */
export function kernelSource(file: string): URL {
  return new URL(`kernels/${file}`, packageRoot);
}

/** A program of this package by its path in `src`; once built it lies atop `dist`. */
export function packageProgram(path: string): URL {
  const runsFromSources = import.meta.url.endsWith('.ts');
  return new URL(runsFromSources ? `src/${path}.ts` : `dist/${basename(path)}.js`, packageRoot);
}
