import { type DType, type Float32MatmulPrecision, getFloat32MatmulPrecision } from '@roofline/tensor-core';
import type { AttentionSizes } from '../operands.ts';
import type { AttentionSettings } from '../options.ts';
import { type FlashKernels, getFlashKernels } from './flash-kernels.ts';
import { type FlashTile, getFlashTile } from './flash-tile.ts';

/** What the choice of kernels may depend on. */
export interface KernelProblem extends AttentionSizes, AttentionSettings {
  readonly dtype: DType;
  /** Those that the caller asked for. */
  readonly kernels: FlashKernels;
  /** Whether the same inputs must give the same bits; forward they always do. */
  readonly deterministic: boolean;
  /** Whether tensor cores multiply float32 to its own accuracy, or to TF32's. */
  readonly float32Precision: Float32MatmulPrecision;
  /** Such as 90 for compute capability 9.0. */
  readonly computeCapability: number;
  readonly multiprocessors: number;
  readonly maxSharedBytesPerBlock: number;
  /** Of forward passes, where it was chosen by hand. */
  readonly tile?: FlashTile;
}

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
  const tile = getFlashTile();
  return {
    ...sizes,
    ...(tile && { tile }),
    ...{ dtype, causal, scale, deterministic, kernels: getFlashKernels() },
    ...{ computeCapability, multiprocessors, maxSharedBytesPerBlock },
    float32Precision: getFloat32MatmulPrecision(),
  };
}
