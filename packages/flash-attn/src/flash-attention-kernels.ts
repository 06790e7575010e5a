import {
  type CudaProperties,
  type DType,
  RooflineError,
  describeValue,
  getFloat32MatmulPrecision,
} from '@roofline/tensor-core';
import type { CompilableKernel } from '@roofline/tensor-core/native';
import { getFlashKernels } from './cuda/flash-kernels.ts';
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
 * `@roofline/tensor-core/native`. They follow from what `setFlashKernels` and `setFloat32MatmulPrecision` say now. Throws as
 * `flashAttention` does, and a DeviceError for what this GPU has no kernels for.
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
  const { computeCapability, multiprocessors, maxSharedBytesPerBlock } = gpu;
  return problemKernels({
    ...sizes,
    ...attentionSettings(name, sizes, options, [...attentionOptions, 'deterministic']),
    ...{ dtype, kernels: getFlashKernels(), float32Precision: getFloat32MatmulPrecision() },
    deterministic: options.deterministic ?? false,
    ...{ computeCapability, multiprocessors, maxSharedBytesPerBlock },
  });
}

const dtypes: readonly unknown[] = ['float64', 'float32', 'float16', 'bfloat16'];
const isCount = (x: unknown): boolean => Number.isSafeInteger(x) && (x as number) >= 0;
const isShape = (x: unknown): boolean => Array.isArray(x) && x.every(isCount);
const recordOf = (x: unknown): Record<string, unknown> =>
  typeof x === 'object' && x !== null ? (x as Record<string, unknown>) : {};

function checkShapes(name: string, shapes: unknown): void {
  const { q, k, dtype } = recordOf(shapes);
  if (isShape(q) && isShape(k) && dtypes.includes(dtype)) return;
  throw new RooflineError(
    'ARGUMENT',
    `${name}: wants { q, k, dtype }, shapes and a floating-point dtype, not ${describeValue(shapes)}.`,
  );
}

function checkGpu(name: string, gpu: unknown): void {
  const { computeCapability, multiprocessors, maxSharedBytesPerBlock } = recordOf(gpu);
  if ([computeCapability, multiprocessors, maxSharedBytesPerBlock].every(isCount)) return;
  throw new RooflineError(
    'ARGUMENT',
    `${name}: wants a GPU's properties { computeCapability, multiprocessors, maxSharedBytesPerBlock }, not ${describeValue(gpu)}.`,
  );
}
