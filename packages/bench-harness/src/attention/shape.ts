import { z } from 'zod';
import { dtypes } from '../measuring/ceilings.ts';

export const count = z.int().positive();

/** Which keys a query sees: those up to its own place, or all. */
export const masks = ['causal', 'full'] as const;

/** Attention of q, k and v [batch, heads, sequence, headDimension] in one dtype, without autocast. */
export const attentionShape = z.object({
  batch: count,
  heads: count,
  headDimension: count,
  sequence: count,
  dtype: z.enum(dtypes),
  /** Causal if not given. */
  mask: z.enum(masks).optional(),
});
export type AttentionShape = z.infer<typeof attentionShape>;

export function isCausal({ mask }: Pick<AttentionShape, 'mask'>): boolean {
  return mask !== 'full';
}

/** `d 64 · sequence 1024 · batch 8 · bfloat16`, more heads than one, and whether all keys are seen. */
export function describeShape(shape: AttentionShape): string {
  const { batch, heads, headDimension, sequence, dtype } = shape;
  const words = [`d ${headDimension}`, `sequence ${sequence}`, `batch ${batch}`];
  const seen = isCausal(shape) ? [] : ['full'];
  return [...words, ...(heads === 1 ? [] : [`${heads} heads`]), ...seen, dtype].join(' · ');
}
