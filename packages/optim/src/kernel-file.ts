import type { KernelSpec } from '@roofline/tensor-core';
import { packageKernels } from '@roofline/cuda';

const kernels = packageKernels(import.meta.url);

/** A kernel of this package. Each is alone in the file of its name: a first launch compiles no others. */
export function kernelFile(name: string, parameters: string): KernelSpec {
  return { source: kernels(`${name}.cu`), name, parameters };
}
