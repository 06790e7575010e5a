import { z } from 'zod';
import { dtypes } from '../measuring/ceilings.ts';

export const count = z.int().positive();

/** Causal attention of q, k and v [batch, heads, sequence, headDimension] in one dtype, without autocast. */
export const attentionShape = z.object({
  batch: count,
  heads: count,
  headDimension: count,
  sequence: count,
  dtype: z.enum(dtypes),
});
export type AttentionShape = z.infer<typeof attentionShape>;

/** `d 64 · sequence 1024 · batch 8 · bfloat16`, and more heads than one. */
export function describeShape({ batch, heads, headDimension, sequence, dtype }: AttentionShape): string {
  const words = [`d ${headDimension}`, `sequence ${sequence}`, `batch ${batch}`];
  return [...words, ...(heads === 1 ? [] : [`${heads} heads`]), dtype].join(' · ');
}
