import { byteSize } from '@roofline/tensor-core';
import type { PhaseWork } from '../measuring/ceilings.ts';
import { isCausal, type AttentionShape } from './shape.ts';

/** What is timed: the output, its gradients, or one after the other. */
export const passes = ['forward', 'backward', 'both'] as const;
export type Pass = (typeof passes)[number];

/** Products of the backward pass over those of the forward pass: five, the weights calculated again, over two. */
const BACKWARD_OVER_FORWARD = 2.5;

/** q, k and v are read, the output is written. */
const FORWARD_TENSORS = 4;
/** q, k, v, the output and its gradient are read, three gradients are written. */
const BACKWARD_TENSORS = 8;

/**
 * The phases of a pass as FlashAttention's papers count them (Dao 2023, section 4.1): 4 · batch · heads · sequence² · d
 * FLOPs forward, half of it under a causal mask, and 2.5 times that backward, whatever an implementation calculates.
 * Bytes are those of the operands and results alone.
 */
export function attentionWork(shape: AttentionShape, pass: Pass): PhaseWork[] {
  const { batch, heads, sequence, headDimension, dtype } = shape;
  const flops = (4 * batch * heads * sequence ** 2 * headDimension) / (isCausal(shape) ? 2 : 1);
  const tensorBytes = batch * heads * sequence * headDimension * byteSize(dtype);
  const forward = { flops, bytes: FORWARD_TENSORS * tensorBytes };
  const backward = { flops: BACKWARD_OVER_FORWARD * flops, bytes: BACKWARD_TENSORS * tensorBytes };
  return { forward: [forward], backward: [backward], both: [forward, backward] }[pass];
}

/** The FLOPs of a pass. */
export function attentionFlops(shape: AttentionShape, pass: Pass): number {
  return attentionWork(shape, pass).reduce((sum, { flops }) => sum + flops, 0);
}
