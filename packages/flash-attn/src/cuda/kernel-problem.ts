import { type DType, getFloat32MatmulPrecision } from '@roofline/tensor-core';
import type { AttentionSizes } from '../operands.ts';
import type { AttentionSettings } from '../options.ts';
import { getFlashKernels } from './flash-kernels.ts';
import type { KernelProblem } from './kernel-plan.ts';

/** What of a call of attention the choice of its kernels depends on. */
export interface ProblemSettings extends AttentionSettings {
  readonly deterministic: boolean;
}

/** The problem that a call on a GPU is, by what `setFlashKernels` and `setFloat32MatmulPrecision` say now. */
export function kernelProblem(
  gpu: Pick<KernelProblem, 'computeCapability' | 'multiprocessors' | 'maxSharedBytesPerBlock'>,
  sizes: AttentionSizes,
  dtype: DType,
  { causal, scale, deterministic }: ProblemSettings,
): KernelProblem {
  const { computeCapability, multiprocessors, maxSharedBytesPerBlock } = gpu;
  return {
    ...sizes,
    ...{ dtype, causal, scale, deterministic, kernels: getFlashKernels() },
    ...{ computeCapability, multiprocessors, maxSharedBytesPerBlock },
    float32Precision: getFloat32MatmulPrecision(),
  };
}
