import {
  type CudaProperties,
  type DType,
  ShapeError,
  checkCount,
  checkDType,
  checkObject,
  checkOptions,
  describeValue,
} from '@roofline/tensor-core';
import type { CompilableKernel } from '@roofline/cuda';
import { kernelProblem } from './cuda/kernel-problem.ts';
import { problemKernels } from './cuda/problem-kernels.ts';
import { attentionSizes } from './operands.ts';
import { attentionOptions, attentionSettings } from './options.ts';
import type { FlashAttentionOptions } from './flash-attention.ts';

/** The operands of a call of `flashAttention`: q [batch, heads, queries, d], k and v [batch, keyHeads, keys, d]. */
export interface FlashAttentionShapes {
  readonly q: readonly number[];
  readonly k: readonly number[];
  readonly dtype: DType;
}

/** What the choice of kernels asks of a GPU: a device's properties, or those of one that is elsewhere. */
export type FlashAttentionGpu = Pick<
  CudaProperties,
  'computeCapability' | 'multiprocessors' | 'maxSharedBytesPerBlock'
>;

/**
 * The kernels that `flashAttention` of such operands and its backward pass run on a GPU, for `compileKernels` of
 * `@roofline/cuda`. They follow from what `setFlashKernels` and `setFloat32MatmulPrecision` say now. Throws as
 * `flashAttention` does, a RooflineError (code RANGE) for properties that are no counts, and a DeviceError for what this GPU has
 * no kernels for.
 */
export function flashAttentionKernels(
  shapes: FlashAttentionShapes,
  gpu: FlashAttentionGpu,
  options: FlashAttentionOptions = {},
): CompilableKernel[] {
  const name = 'flashAttentionKernels';
  checkShapes(name, shapes);
  checkGpu(name, gpu);
  const { q, k, dtype } = shapes;
  const specOf = (shape: readonly number[]) => ({ shape, dtype });
  const sizes = attentionSizes(name, specOf(q), specOf(k), specOf(k));
  const settings = attentionSettings(name, sizes, options, [...attentionOptions, 'deterministic']);
  const { deterministic = false } = options;
  return problemKernels(kernelProblem(gpu, sizes, dtype, { ...settings, deterministic }));
}

export function checkShapes(name: string, shapes: FlashAttentionShapes): void {
  checkOptions(name, shapes, ['q', 'k', 'dtype']);
  checkDType(name, shapes.dtype);
  for (const operand of ['q', 'k'] as const) {
    const shape = shapes[operand];
    if (!Array.isArray(shape)) {
      throw new ShapeError(
        `${name}: ${operand} must be a shape, a list of lengths, not ${describeValue(shape)}.`,
      );
    }
    for (const length of shape) checkCount(name, `each length of ${operand}`, length);
  }
}

export function checkGpu(name: string, gpu: FlashAttentionGpu): void {
  checkObject(name, "the GPU's properties", gpu);
  for (const property of ['computeCapability', 'multiprocessors', 'maxSharedBytesPerBlock'] as const)
    checkCount(name, property, gpu[property]);
}
