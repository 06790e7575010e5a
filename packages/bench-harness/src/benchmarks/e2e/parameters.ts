import { z } from 'zod';

/** `forward` runs without a tape; the others compute the loss too. */
export const modes = ['forward', 'forward-backward', 'train-step'] as const;
export type Mode = (typeof modes)[number];

/** The lower ones by autocast: parameters and gradients stay float32. */
export const e2eDtypes = ['float32', 'bfloat16', 'float16'] as const;
export type E2eDType = (typeof e2eDtypes)[number];

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

/** The whole sweep: every combination of the lists is a cell. */
export const e2eParameters = z.object({
  models: z.array(namedModel).min(1),
  contexts: z.array(count).min(1),
  batches: z.array(count).min(1),
  modes: z.array(z.enum(modes)).min(1),
  dtypes: z.array(z.enum(e2eDtypes)).min(1),
  /** Steps that run before those that count. */
  warmup: z.int().nonnegative(),
  steps: count,
  seed: z.int().nonnegative(),
  /** PyTorch and its version, to run in turn with ours; null for ours alone. */
  peer: z.object({ name: z.literal('torch'), version: z.string() }).nullable(),
});
export type E2eParameters = z.infer<typeof e2eParameters>;

export const e2eCell = z.object({
  size: z.string(),
  shape: modelShape,
  context: count,
  batch: count,
  mode: z.enum(modes),
  dtype: z.enum(e2eDtypes),
});
export type E2eCell = z.infer<typeof e2eCell>;

export type E2eSettings = Pick<E2eParameters, 'warmup' | 'steps' | 'seed' | 'peer'>;

/** All combinations: models outermost, modes innermost. */
export function expandCells(parameters: E2eParameters): E2eCell[] {
  const { models, dtypes, batches, contexts, modes } = parameters;
  return models.flatMap(({ size, shape }) =>
    dtypes.flatMap((dtype) =>
      batches.flatMap((batch) =>
        contexts.flatMap((context) => modes.map((mode) => ({ size, shape, context, batch, mode, dtype }))),
      ),
    ),
  );
}

/** `small · context 256 · batch 4 · train-step · float32`. */
export function describeCell({ size, context, batch, mode, dtype }: E2eCell): string {
  return `${size} · context ${context} · batch ${batch} · ${mode} · ${dtype}`;
}
