import { byteSize } from '@roofline/tensor-core';
import type { KernelSpec } from '@roofline/cuda';
import { kernelProblem } from './cuda/kernel-problem.ts';
import { type FlashTile, checkTile } from './cuda/flash-tile.ts';
import { mmaForwardKernels } from './cuda/mma/mma-kernels.ts';
import { mmaForwardSharedBytes, planMmaTile } from './cuda/mma/mma-plan.ts';
import {
  checkGpu,
  checkShapes,
  type FlashAttentionGpu,
  type FlashAttentionShapes,
} from './flash-attention-kernels.ts';
import { attentionSizes } from './operands.ts';
import { attentionOptions, attentionSettings } from './options.ts';
import type { FlashAttentionOptions } from './flash-attention.ts';

/** The kernel of a forward pass with a tile that was chosen by hand. */
export interface FlashTileKernel {
  /** For a device's `kernel`. */
  readonly spec: KernelSpec;
  readonly threads: number;
  /** Of a block. */
  readonly sharedBytes: number;
}

/**
 * The kernel that `flashAttention` of such operands runs on forward after `setFlashTile(tile)`. Throws as `setFlashTile` and
 * `flashAttentionKernels` do, and a DeviceError for a tile that the GPU has no room for.
 */
export function flashTileKernel(
  shapes: FlashAttentionShapes,
  gpu: FlashAttentionGpu,
  tile: FlashTile,
  options: FlashAttentionOptions = {},
): FlashTileKernel {
  const name = 'flashTileKernel';
  checkShapes(name, shapes);
  checkGpu(name, gpu);
  checkTile(name, tile);
  const { q, k, dtype } = shapes;
  const specOf = (shape: readonly number[]) => ({ shape, dtype });
  const sizes = attentionSizes(name, specOf(q), specOf(k), specOf(k));
  const settings = attentionSettings(name, sizes, options, [...attentionOptions, 'deterministic']);
  const plan = planMmaTile(kernelProblem(gpu, sizes, dtype, { ...settings, deterministic: false }), tile);
  const [spec] = mmaForwardKernels({ dtype }, plan);
  return {
    spec: spec!,
    threads: 32 * plan.forward.warps,
    sharedBytes: mmaForwardSharedBytes(plan.forward, byteSize(dtype)),
  };
}
