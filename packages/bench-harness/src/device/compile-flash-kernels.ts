import { type FlashAttentionGpu, flashAttentionKernels, flashTileKernel } from '@roofline/flash-attn';
import { RooflineError } from '@roofline/tensor-core';
import { compileKernels } from '@roofline/cuda';
import { isCausal, type CompiledAttention } from '../attention/shape.ts';
import type { CellTask } from '../runner/cell-task.ts';

export type CompileFlashKernelsJob = {
  shapes: CompiledAttention[];
  gpu: FlashAttentionGpu & { [key: string]: number };
};

/** Compiles what attention of all shapes runs on a GPU, all at once, and opens no GPU. Gives how many kernels. */
export const compileFlashKernels: CellTask<
  CompileFlashKernelsJob,
  Record<string, never>,
  { kernels: number }
> = {
  name: 'compile-flash-kernels',
  async measure({ shapes, gpu }, { progress }) {
    const kernels = shapes.flatMap((shape) => kernelsOf(shape, gpu));
    const onProgress = (compiled: number, total: number) => progress(compiled, total);
    return { kernels: await compileKernels(kernels, gpu.computeCapability, { onProgress }) };
  },
};

/** None of a shape that flashAttention refuses, or of a tile that has no room: its own cell says why. */
function kernelsOf(problem: CompiledAttention, gpu: FlashAttentionGpu) {
  const { batch, heads, sequence, headDimension, dtype, tile } = problem;
  const shape = [batch, heads, sequence, headDimension];
  try {
    if (tile) return [flashTileKernel({ q: shape, k: shape, dtype }, gpu, tile).spec];
    return flashAttentionKernels({ q: shape, k: shape, dtype }, gpu, { causal: isCausal(problem) });
  } catch (error) {
    if (error instanceof RooflineError) return [];
    throw error;
  }
}
