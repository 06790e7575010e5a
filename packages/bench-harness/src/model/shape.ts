import { z } from 'zod';

const count = z.int().positive();
const positive = z.number().positive();

const ropeScaling = z.discriminatedUnion('type', [
  z.object({ type: z.literal('linear'), factor: positive }),
  z.object({
    type: z.literal('llama3'),
    ...{ factor: positive, originalContextLength: positive },
    ...{ lowFrequencyFactor: positive, highFrequencyFactor: positive },
  }),
  z.object({
    type: z.literal('yarn'),
    ...{ factor: positive, originalContextLength: positive },
    ...{ fastTurns: positive.exactOptional(), slowTurns: positive.exactOptional() },
    ...{ attentionFactor: positive.exactOptional(), wholePairs: z.boolean().exactOptional() },
  }),
]);

/** The shape of a model, without its context length, which is swept. Presets have none of what may be left out. */
export const modelShape = z.object({
  vocabularySize: count,
  modelDimension: count,
  feedForwardDimension: count,
  layers: count,
  heads: count,
  keyValueHeads: count.exactOptional(),
  headDimension: count.exactOptional(),
  attentionBias: z.enum(['none', 'query-key-value', 'all']).exactOptional(),
  queryKeyNorm: z.boolean().exactOptional(),
  feedForward: z.enum(['swiglu', 'gelu', 'gelu-tanh']).exactOptional(),
  feedForwardBias: z.boolean().exactOptional(),
  norm: z.enum(['rms', 'layer']).exactOptional(),
  normEpsilon: z.number().nonnegative().exactOptional(),
  positions: z.enum(['rotary', 'learned']).exactOptional(),
  ropeTheta: positive.exactOptional(),
  ropeScaling: ropeScaling.exactOptional(),
  slidingWindow: count.exactOptional(),
  fullAttentionLayers: z.array(z.int().nonnegative()).readonly().exactOptional(),
  tieWordEmbeddings: z.boolean().exactOptional(),
});
export type ModelShape = z.infer<typeof modelShape>;

/** A model and the name it goes by in tables. */
export const namedModel = z.object({ size: z.string(), shape: modelShape });
export type NamedModel = z.infer<typeof namedModel>;
