import { packageFolder } from './native/package-kernels.ts';

/** The folder of this package. */
export const packageRoot = packageFolder(import.meta.url);

/** A CUDA source file of this package. */
export function kernelSource(file: string): URL {
  return new URL(`kernels/${file}`, packageRoot);
}

/** A program of this package, `src/NAME.ts` or, once built, `dist/NAME.js`. */
export function packageProgram(name: string): URL {
  const runsFromSources = import.meta.url.endsWith('.ts');
  return new URL(runsFromSources ? `src/${name}.ts` : `dist/${name}.js`, packageRoot);
}
