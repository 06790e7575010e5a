import { randn, type Device, type Tensor } from '@roofline/tensor-core';
import { attentionFunction } from './attention-function.ts';
import type { AttentionKind } from './kinds.ts';
import { isCausal, type AttentionShape } from './shape.ts';

/** All [batch, heads, sequence, head dimension]; q, k and v collect gradients. Disposing frees all of it. */
export interface AttentionOperands extends Disposable {
  readonly q: Tensor;
  readonly k: Tensor;
  readonly v: Tensor;
  /** Of the output, for the backward pass. */
  readonly gradient: Tensor;
  readonly causal: boolean;
}

/** Normally distributed numbers; equal seeds give equal ones. */
export function createOperands(shape: AttentionShape, device: Device, seed: number): AttentionOperands {
  const { batch, heads, sequence, headDimension, dtype } = shape;
  const draw = (index: number) =>
    randn([batch, heads, sequence, headDimension], { seed: 4 * seed + index, dtype, device });
  const [q, k, v] = [draw(0), draw(1), draw(2)].map((leaf) => leaf.requiresGrad_());
  const operands = { q: q!, k: k!, v: v!, gradient: draw(3) };
  return {
    ...operands,
    causal: isCausal(shape),
    [Symbol.dispose]() {
      clearGradients(operands);
      for (const operand of Object.values(operands)) operand.dispose();
    },
  };
}

/** Attention, on the tape. */
export function attend(kind: AttentionKind, { q, k, v, causal }: AttentionOperands): Tensor {
  const scale = 1 / Math.sqrt(q.shape.at(-1)!);
  return attentionFunction(kind)(q, k, v, { causal, scale });
}

/** Frees the gradients that backward passes have brought. */
export function clearGradients({ q, k, v }: Pick<AttentionOperands, 'q' | 'k' | 'v'>): void {
  for (const leaf of [q, k, v]) {
    leaf.grad?.dispose();
    leaf.grad = null;
  }
}
