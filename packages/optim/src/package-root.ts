/** The folder of this package, from its sources and from its build alike: both lie one level below it. */
const packageRoot = new URL('..', import.meta.url);

/** A CUDA source file of this package. */
export function kernelSource(file: string): URL {
  return new URL(`kernels/${file}`, packageRoot);
}
