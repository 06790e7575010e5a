import { z } from 'zod';
import { modelShape } from '../../model/shape.ts';
import { seededRandom } from '../../measuring/seeded-random.ts';
import { divergingNumber } from '../../measuring/statistics.ts';

const tokens = z.array(z.array(z.int()));

/** A small model with its data: what both sides run. */
const agreeJob = z.object({
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

const relativeErrors = z.record(z.string(), divergingNumber);

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

/**
 * How large a random configuration is: `tiny` ones have odd contexts and vocabularies on purpose, `wide` ones
 * matrices large enough for the kernels that large models use.
 */
export const agreeScales = ['tiny', 'wide'] as const;
export type AgreeScale = (typeof agreeScales)[number];

type Between = (low: number, high: number) => number;

/** A random configuration with random tokens; all of it is drawn from the seed. */
export function randomJob(seed: number, scale: AgreeScale): AgreeJob {
  const random = seededRandom(seed);
  const between: Between = (low, high) => low + Math.floor(random() * (high - low + 1));
  const { shape, batch, context } = scale === 'tiny' ? drawTiny(between) : drawWide(between);
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

type Drawn = Pick<AgreeJob, 'shape' | 'batch' | 'context'>;

function drawTiny(between: Between): Drawn {
  const heads = between(1, 4);
  const shape = {
    vocabularySize: between(50, 300),
    modelDimension: heads * 2 * between(2, 10),
    feedForwardDimension: between(16, 120),
    layers: between(1, 3),
    heads,
  };
  return { shape, batch: between(1, 3), context: between(5, 40) };
}

/** Widths of 256 to 768, 512 to 1024 tokens. */
function drawWide(between: Between): Drawn {
  const heads = between(4, 12);
  // RoPE turns pairs: the width of a head is even.
  const pairs = between(Math.ceil(256 / (2 * heads)), Math.floor(768 / (2 * heads)));
  const shape = {
    vocabularySize: between(900, 1100),
    modelDimension: heads * 2 * pairs,
    feedForwardDimension: between(768, 2048),
    layers: 2,
    heads,
  };
  const batch = between(2, 4);
  return { shape, batch, context: between(Math.ceil(512 / batch), Math.floor(1024 / batch)) };
}
