import { packageFolder } from './native/package-kernels.ts';

/** The folder of this package. */
export const packageRoot = packageFolder(import.meta.url);

/** A CUDA source file of this package. */
export function kernelSource(file: string): URL {
  return new URL(`kernels/${file}`, packageRoot);
}
