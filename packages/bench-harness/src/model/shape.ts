import { z } from 'zod';

const count = z.int().positive();

/** The shape of a model, without its context length, which is swept. */
export const modelShape = z.object({
  vocabularySize: count,
  modelDimension: count,
  feedForwardDimension: count,
  layers: count,
  heads: count,
});
export type ModelShape = z.infer<typeof modelShape>;

/** A model and the name it goes by in tables. */
export const namedModel = z.object({ size: z.string(), shape: modelShape });
export type NamedModel = z.infer<typeof namedModel>;
