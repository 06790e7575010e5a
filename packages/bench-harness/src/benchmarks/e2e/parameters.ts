import { z } from 'zod';
import { modelAttentions, peerAttentions } from '../../attention/kinds.ts';
import { executions, peerExecutions } from '../../execution/kinds.ts';
import { cellNames, cellWords, type CellNames } from '../../parameters/cell-names.ts';
import { cellSchema, combinations } from '../../parameters/cell-schema.ts';
import { parameter } from '../../parameters/parameter.ts';
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

/** The parameters of a step; records from before there was a choice have none of attention and execution. */
export const stepParameters = {
  size: parameter(z.string()),
  shape: parameter(modelShape),
  context: parameter(count),
  batch: parameter(count, { column: 'swept' }),
  attention: parameter(z.enum(modelAttentions).default('plain'), {
    ...{ column: 'swept', usual: 'plain' },
    words: (kind) => `${kind} attention`,
  }),
  execution: parameter(z.enum(executions).default('eager'), { column: 'swept', usual: 'eager' }),
  peerAttention: parameter(z.enum(peerAttentions).default('plain'), {
    ...{ column: 'swept', usual: 'plain', title: "PyTorch's attention", beside: 'attention' },
    words: (kind) => `PyTorch's ${kind} attention`,
  }),
  peerExecution: parameter(z.enum(peerExecutions).default('eager'), {
    ...{ column: 'swept', usual: 'eager', title: "PyTorch's execution", beside: 'execution' },
    words: (way) => `PyTorch ${way}`,
  }),
  mode: parameter(z.enum(modes)),
  dtype: parameter(z.enum(e2eDtypes), { column: 'swept' }),
};

export const e2eCell = cellSchema(stepParameters);
export type E2eCell = z.infer<typeof e2eCell>;

export type E2eSettings = Pick<E2eParameters, 'warmup' | 'steps' | 'seed' | 'peer'> & {
  /** Eager steps are swept too. Left out otherwise, as in records from before it was asked. */
  readonly sweepsEager?: true;
};

/** All combinations: models outermost, modes innermost. Those of a peer are swept only where there is one. */
export function expandCells(parameters: E2eParameters): E2eCell[] {
  const { models, peer, executions = ['eager'], peerExecutions = ['eager'] } = parameters;
  return combinations({
    model: models,
    dtype: parameters.dtypes,
    batch: parameters.batches,
    context: parameters.contexts,
    attention: parameters.attentions,
    execution: executions,
    peerAttention: peer ? parameters.peerAttentions : ['plain' as const],
    peerExecution: peer ? peerExecutions : ['eager' as const],
    mode: parameters.modes,
  }).map(({ model: { size, shape }, ...cell }) => ({ size, shape, ...cell }));
}

/** `small · context 256 · batch 4 · train-step · float32`, and what is neither plain nor eager. */
export function describeCell(cell: E2eCell): string {
  return cellWords(stepParameters, cell).join(' · ');
}

/** How a step is made, on both sides. */
const ways = ['attention', 'execution', 'peerAttention', 'peerExecution'] as const;
type Way = Pick<E2eCell, (typeof ways)[number]>;

/** `flash attention`, `compiled`: plain and eager are left out. */
export function wayWords(cell: Way): string[] {
  return cellWords(stepParameters, cell, ways);
}

/** `small`, or with what is neither plain nor eager: `small, flash attention, compiled`. */
export function sizeName(cell: Pick<E2eCell, 'size'> & Way): string {
  return [cell.size, ...wayWords(cell)].join(', ');
}

/** Names of cells that share a table or plot; see `cellNames`. */
export function stepNames(
  cells: readonly { readonly cell: E2eCell }[],
  keys?: readonly (keyof E2eCell)[],
): CellNames {
  return cellNames(
    stepParameters,
    cells.map(({ cell }) => cell),
    keys,
  );
}
