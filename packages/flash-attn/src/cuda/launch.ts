import type { CudaContext, Layout, MemoryView, StridedMemory } from '@roofline/tensor-core';
import { denseCopy } from '@roofline/tensor-core/kernel-api';
import { type HeadLayout, storedDimensions } from '../head-layout.ts';
import { attentionSizes } from '../operands.ts';
import type { FlashCall } from './flash-call.ts';
import { isReadableByTma } from './hopper/head-tensor-map.ts';
import { launchHopperBackward } from './hopper/hopper-backward.ts';
import { launchHopperForward } from './hopper/hopper-forward.ts';
import { type BackwardPlan, type ForwardPlan, planBackward, planForward } from './kernel-plan.ts';
import { type ProblemSettings, kernelProblem } from './kernel-problem.ts';
import { launchMmaBackward, launchMmaForward } from './mma/mma-kernels.ts';
import { launchSimtBackward, launchSimtForward } from './simt/simt-kernels.ts';

interface ForwardSettings extends ProblemSettings {
  readonly layout: HeadLayout;
}

interface BackwardSettings extends ProblemSettings {
  readonly layouts: readonly HeadLayout[];
}

/** The CUDA lowering of flashAttention. */
export function launchForward(
  context: CudaContext,
  [q, k, v]: readonly MemoryView[],
  [o, lse, statistics]: readonly MemoryView[],
  settings: ForwardSettings,
): void {
  if (lse!.size === 0) return;
  const sizes = attentionSizes('flashAttention', q!, k!, v!);
  const problem = kernelProblem(context.properties, sizes, q!.dtype, settings);
  // Every forward kernel gives the same bits twice.
  const plan = planForward({ ...problem, deterministic: false });
  const operand = operandOf(context, plan);
  const call: FlashCall = {
    ...{ context, dtype: q!.dtype, sizes, settings },
    tensors: { q: operand(q!), k: operand(k!), v: operand(v!), o: logical(o!, settings.layout) },
    rows: { lse: lse!.address, statistics: addressOf(statistics!) },
  };
  if (plan.family === 'hopper') launchHopperForward(call, plan);
  else if (plan.family === 'mma') launchMmaForward(call, plan);
  else launchSimtForward(call, plan);
}

// In elements of all dtypes, what keeps each row of heads aligned for TMA.
const alignedElements = 8;

/** Whether every backward kernel can write a gradient of that layout, as a part of a joint one say. */
export function isWrittenByTma({ strides, offset }: Layout): boolean {
  return (
    strides.at(-1) === 1 && [offset, ...strides.slice(0, -1)].every((each) => each % alignedElements === 0)
  );
}

/** The CUDA lowering of flashAttentionBackward. */
export function launchBackward(
  context: CudaContext,
  [q, k, v, o, lse, statistics, gradO, gradLse]: readonly MemoryView[],
  [gradQ, gradK, gradV]: readonly MemoryView[],
  settings: BackwardSettings,
): void {
  const sizes = attentionSizes('flashAttention', q!, k!, v!);
  const plan = planBackward(kernelProblem(context.properties, sizes, q!.dtype, settings));
  const operand = operandOf(context, plan);
  const call: FlashCall = {
    ...{ context, dtype: q!.dtype, sizes, settings },
    tensors: {
      ...{ q: operand(q!), k: operand(k!), v: operand(v!), o: operand(o!), gradO: operand(gradO!) },
      gradQ: logical(gradQ!, settings.layouts[0]!),
      gradK: logical(gradK!, settings.layouts[1]!),
      gradV: logical(gradV!, settings.layouts[2]!),
    },
    rows: {
      lse: lse!.address,
      statistics: addressOf(statistics!),
      gradLse: gradLse && dense(context, gradLse).address,
    },
  };
  if (plan.family === 'hopper') launchHopperBackward(call, plan);
  else if (plan.family === 'mma') launchMmaBackward(call, plan);
  else launchSimtBackward(call, plan);
}

/** Makes operands such as a plan's kernels read. */
function operandOf(
  context: CudaContext,
  { family }: ForwardPlan | BackwardPlan,
): (x: MemoryView) => StridedMemory {
  if (family !== 'hopper') return (x) => denseRows(context, x);
  return (x) => (isReadableByTma(x) ? x : denseCopy(context, x));
}

/** An output, which lies densely in the order of its layout, as [batch, heads, sequence, d]. */
function logical({ address, dtype, shape, strides }: MemoryView, layout: HeadLayout): StridedMemory {
  return {
    address,
    dtype,
    shape: storedDimensions(shape, layout),
    strides: storedDimensions(strides, layout),
  };
}

/** Null for a tensor without elements. */
function addressOf({ address, size }: MemoryView): number | null {
  return size === 0 ? null : address;
}

/** x itself where the elements of a row lie densely, as kernels read them, else a copy. */
function denseRows(context: CudaContext, x: MemoryView): StridedMemory {
  return x.strides[3] === 1 || x.shape[3] === 1 || x.size === 0 ? x : denseCopy(context, x);
}

function dense(context: CudaContext, x: MemoryView): StridedMemory {
  return x.isContiguous || x.size === 0 ? x : denseCopy(context, x);
}
