import { z } from 'zod';
import { modelAttentions, peerAttentions } from '../../attention/kinds.ts';
import { executions, peerExecutions } from '../../execution/kinds.ts';
import { peerSetting } from '../../peer/peer-setting.ts';

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
  attentions: z.array(z.enum(modelAttentions)).min(1),
  /** Steps that run before those that count. */
  warmup: z.int().nonnegative(),
  steps: count,
  seed: z.int().nonnegative(),
  peer: peerSetting,
  /** Default: eager only. */
  executions: z.array(z.enum(executions)).min(1).optional(),
  /** Of the peer; without one they are not swept. */
  peerAttentions: z.array(z.enum(peerAttentions)).min(1),
  peerExecutions: z.array(z.enum(peerExecutions)).min(1).optional(),
});
export type E2eParameters = z.infer<typeof e2eParameters>;

export const e2eCell = z.object({
  size: z.string(),
  shape: modelShape,
  context: count,
  batch: count,
  /** Records from before there was a choice have none, of either side. */
  attention: z.enum(modelAttentions).default('plain'),
  peerAttention: z.enum(peerAttentions).default('plain'),
  execution: z.enum(executions).default('eager'),
  peerExecution: z.enum(peerExecutions).default('eager'),
  mode: z.enum(modes),
  dtype: z.enum(e2eDtypes),
});
export type E2eCell = z.infer<typeof e2eCell>;

export type E2eSettings = Pick<E2eParameters, 'warmup' | 'steps' | 'seed' | 'peer'> & {
  /** Eager steps are swept too. Left out otherwise, as in records from before it was asked. */
  readonly sweepsEager?: true;
};

/** All combinations: models outermost, modes innermost. */
export function expandCells(parameters: E2eParameters): E2eCell[] {
  const { models, dtypes, batches, contexts, modes } = parameters;
  const variants = variantsOf(parameters);
  return models.flatMap(({ size, shape }) =>
    dtypes.flatMap((dtype) =>
      batches.flatMap((batch) =>
        contexts.flatMap((context) =>
          variants.flatMap((variant) =>
            modes.map((mode) => ({ size, shape, context, batch, ...variant, mode, dtype })),
          ),
        ),
      ),
    ),
  );
}

/** How a cell's step is made, on both sides. */
type Variant = Pick<E2eCell, 'attention' | 'peerAttention' | 'execution' | 'peerExecution'>;

/** Each way of ours paired with each of the peer's, where there is one. */
function variantsOf({ attentions, executions = ['eager'], ...others }: E2eParameters): Variant[] {
  const { peer, peerAttentions, peerExecutions = ['eager'] } = others;
  const [attentionsOfPeer, executionsOfPeer] =
    peer === null ? [['plain'] as const, ['eager'] as const] : [peerAttentions, peerExecutions];
  return attentions.flatMap((attention) =>
    executions.flatMap((execution) =>
      attentionsOfPeer.flatMap((peerAttention) =>
        executionsOfPeer.map((peerExecution) => ({ attention, peerAttention, execution, peerExecution })),
      ),
    ),
  );
}

/** `small · context 256 · batch 4 · train-step · float32`, and what is neither plain nor eager. */
export function describeCell(cell: E2eCell): string {
  const { size, context, batch, mode, dtype } = cell;
  return [size, `context ${context}`, `batch ${batch}`, mode, dtype, ...variantWords(cell)].join(' · ');
}

/** `small`, or with what is neither plain nor eager: `small, flash attention, compiled`. */
export function sizeName(cell: Pick<E2eCell, 'size'> & Variant): string {
  return [cell.size, ...variantWords(cell)].join(', ');
}

/** `flash attention`, `compiled`, `PyTorch sdpa`: plain and eager are left out. */
export function variantWords({ attention, execution, peerAttention, peerExecution }: Variant): string[] {
  const theirs = [peerAttention, peerExecution].filter((word) => word !== 'plain' && word !== 'eager');
  return [
    ...(attention === 'plain' ? [] : [`${attention} attention`]),
    ...(execution === 'eager' ? [] : [execution]),
    ...(theirs.length === 0 ? [] : [`PyTorch ${theirs.join(', ')}`]),
  ];
}
