import { z } from 'zod';
import { dtypes } from '../measuring/ceilings.ts';
import { cellWords } from '../parameters/cell-names.ts';
import { cellSchema } from '../parameters/cell-schema.ts';
import { dtypeSynonyms } from '../parameters/dtype-synonyms.ts';
import { parameter } from '../parameters/parameter.ts';

export const count = z.int().positive();

/** Which keys a query sees: those up to its own place, or all. */
export const masks = ['causal', 'full'] as const;

/** The shape of attention of q, k and v [batch, heads, sequence, headDimension] in one dtype, without autocast. */
export const shapeParameters = {
  headDimension: parameter(count, {
    ...{ title: 'd', description: 'Head dimension.', words: (dimension) => `d ${dimension}` },
    flag: { name: 'head-dim', describe: 'Head dimension' },
  }),
  sequence: parameter(count, { flag: { describe: 'Queries, and as many keys' } }),
  batch: parameter(count, { column: 'swept', flag: { describe: 'Sequences of a batch' } }),
  heads: parameter(count, {
    ...{ column: 'swept', usual: 1, words: (heads) => `${heads} heads` },
    flag: { describe: 'Heads; 1 if not given' },
  }),
  /** Records from before there was a choice have none. */
  mask: parameter(z.enum(masks).default('causal'), {
    ...{ column: 'swept', usual: 'causal' },
    description: 'Keys that a query sees: up to its own place, or all.',
    flag: { describe: 'Keys that a query sees: those up to its own place, or all; causal if not given' },
  }),
  dtype: parameter(z.enum(dtypes), {
    column: 'swept',
    flag: { describe: 'Of operands and results; no autocast', synonyms: dtypeSynonyms },
  }),
};

/** Causal if not said. */
export type AttentionShape = z.input<typeof attentionShape>;
export const attentionShape = cellSchema(shapeParameters);

/** Flash attention whose kernels are to be compiled: those that it chooses, or of the forward pass by tiles of one size. */
export type CompiledAttention = AttentionShape & {
  readonly tile?: { readonly queries: number; readonly keys: number };
};

export function isCausal({ mask }: Pick<AttentionShape, 'mask'>): boolean {
  return mask !== 'full';
}

/** `d 64 · sequence 1024 · batch 8 · bfloat16`, more heads than one, and whether all keys are seen. */
export function describeShape(shape: AttentionShape): string {
  return cellWords(shapeParameters, shape).join(' · ');
}
