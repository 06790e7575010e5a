import { type KernelParameters, type KernelVariants, kernelVariants, packageKernels } from '@roofline/cuda';

const kernels = packageKernels(import.meta.url);

/** A kernel of this package. Each is alone in the file of its name: a first launch compiles no others. */
export function kernelFile<const P extends KernelParameters>(
  name: string,
  parameters: P,
  dynamicSharedBytes?: number,
): KernelVariants<P> {
  return kernelVariants(kernels(`${name}.cu`), name, parameters, dynamicSharedBytes);
}

/** The definitions of a kernel that has one variant. */
export const noDefines = {};
