import { z } from 'zod';
import { dtypes } from '../measuring/ceilings.ts';
import { cellWords } from '../parameters/cell-names.ts';
import { cellSchema } from '../parameters/cell-schema.ts';
import { parameter } from '../parameters/parameter.ts';

export const count = z.int().positive();

/** Which keys a query sees: those up to its own place, or all. */
export const masks = ['causal', 'full'] as const;

/** The shape of attention of q, k and v [batch, heads, sequence, headDimension] in one dtype, without autocast. */
export const shapeParameters = {
  headDimension: parameter(count, {
    ...{ title: 'd', description: 'Head dimension.' },
    words: (dimension) => `d ${dimension}`,
  }),
  sequence: parameter(count),
  batch: parameter(count, { column: 'swept' }),
  heads: parameter(count, { column: 'swept', usual: 1, words: (heads) => `${heads} heads` }),
  /** Records from before there was a choice have none. */
  mask: parameter(z.enum(masks).default('causal'), {
    ...{ column: 'swept', usual: 'causal' },
    description: 'Keys that a query sees: up to its own place, or all.',
  }),
  dtype: parameter(z.enum(dtypes), { column: 'swept' }),
};

/** Causal if not said. */
export type AttentionShape = z.input<typeof attentionShape>;
const attentionShape = cellSchema(shapeParameters);

export function isCausal({ mask }: Pick<AttentionShape, 'mask'>): boolean {
  return mask !== 'full';
}

/** `d 64 · sequence 1024 · batch 8 · bfloat16`, more heads than one, and whether all keys are seen. */
export function describeShape(shape: AttentionShape): string {
  return cellWords(shapeParameters, shape).join(' · ');
}
