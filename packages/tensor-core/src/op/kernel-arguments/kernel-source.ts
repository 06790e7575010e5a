import { packageKernels } from '@roofline/cuda';

/** A CUDA source of this package, by its path in `kernels`. */
export const kernelSource = packageKernels(import.meta.url);
