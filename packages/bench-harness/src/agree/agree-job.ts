import { z } from 'zod';
import { modelShape } from '../e2e/parameters.ts';
import { seededRandom } from '../seeded-random.ts';

const tokens = z.array(z.array(z.int()));

/** A tiny model with its data: what both sides run. */
export const agreeJob = z.object({
  shape: modelShape,
  batch: z.int(),
  context: z.int(),
  seed: z.int(),
  ids: tokens,
  targets: tokens,
  /** AdamW steps. */
  steps: z.int(),
  learningRate: z.number(),
  weightDecay: z.number(),
});
export type AgreeJob = z.infer<typeof agreeJob>;

const relativeErrors = z.record(z.string(), z.number());

export const agreeResult = z.object({
  torch: z.string(),
  /** Of `logits` and `loss`. */
  values: relativeErrors,
  /** Of each parameter's gradient after the first backward pass. */
  gradients: relativeErrors,
  /** Of each parameter after the steps. */
  parameters: relativeErrors,
});
export type AgreeResult = z.infer<typeof agreeResult>;

/** Largest relative error by norm that float32 rounding explains. */
export const TOLERANCES = { values: 1e-5, gradients: 1e-4, parameters: 1e-5 } as const;

/** A random small configuration with random tokens; odd contexts and vocabularies on purpose. */
export function randomJob(seed: number): AgreeJob {
  const random = seededRandom(seed);
  const between = (low: number, high: number) => low + Math.floor(random() * (high - low + 1));
  const heads = between(1, 4);
  const shape = {
    vocabularySize: between(50, 300),
    modelDimension: heads * 2 * between(2, 10),
    feedForwardDimension: between(16, 120),
    layers: between(1, 3),
    heads,
  };
  const [batch, context] = [between(1, 3), between(5, 40)];
  const draw = () =>
    Array.from({ length: batch }, () =>
      Array.from({ length: context }, () => between(0, shape.vocabularySize - 1)),
    );
  return {
    shape,
    batch,
    context,
    seed,
    ids: draw(),
    targets: draw(),
    steps: 3,
    learningRate: 1e-3,
    weightDecay: 0.01,
  };
}
