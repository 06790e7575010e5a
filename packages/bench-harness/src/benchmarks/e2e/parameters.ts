import { z } from 'zod';
import { attentionsOf, modelAttentions, peerAttentions } from '../../attention/kinds.ts';
import { executions, executionsOf, peerExecutions } from '../../execution/kinds.ts';
import {
  budgetText,
  logitsModes,
  noBudget,
  recomputeInWords,
  recomputeText,
} from '../../memory-saving/kinds.ts';
import { modelShape, namedModel, type NamedModel } from '../../model/shape.ts';
import { cellNames, cellWords, type CellNames } from '../../parameters/cell-names.ts';
import { cellSchema, combinations } from '../../parameters/cell-schema.ts';
import { dtypeSynonyms } from '../../parameters/dtype-synonyms.ts';
import { parameter, type Parameters } from '../../parameters/parameter.ts';
import { sweepOf, type ListsOf, type ValuesOf } from '../../parameters/sweep.ts';
import { peerOfExecution, peerTitles } from '../../peer/kinds.ts';
import { stepPeersSetting, type StepPeersSetting } from '../../peer/peer-setting.ts';

/** `forward` runs without a tape; the others compute the loss too. */
export const modes = ['forward', 'forward-backward', 'train-step'] as const;
export type Mode = (typeof modes)[number];

/** The lower ones by autocast: parameters and gradients stay float32. */
export const e2eDtypes = ['float32', 'bfloat16', 'float16'] as const;
export type E2eDType = (typeof e2eDtypes)[number];

const count = z.int().positive();
const steps = z.int().nonnegative();

/** The parameters of a step; records from before there was a choice have none of attention and execution. */
export const stepParameters = {
  size: parameter(z.string()),
  shape: parameter(modelShape),
  context: parameter(count, {
    flag: {
      ...{ describe: 'Tokens of a sequence', default: '256' },
      completions: ['128', '256', '512', '1024'],
    },
  }),
  batch: parameter(count, {
    column: 'swept',
    flag: { describe: 'Sequences of a batch', default: '4', completions: ['1', '4', '8'] },
  }),
  attention: parameter(z.enum(modelAttentions).default('plain'), {
    ...{ column: 'swept', usual: 'plain', words: (kind) => `${kind} attention` },
    flag: {
      default: 'plain',
      describe: 'Attention of the model: in separate ops, or by the kernels of @roofline/flash-attn',
    },
  }),
  execution: parameter(z.enum(executions).default('eager'), {
    ...{ column: 'swept', usual: 'eager' },
    flag: {
      default: 'eager',
      describe:
        'Run steps op by op, or as compiled programs, autotuned with the algorithm of each product timed',
    },
  }),
  peerAttention: parameter(z.enum(peerAttentions).default('plain'), {
    ...{ column: 'swept', usual: 'plain', title: "Peer's attention", beside: 'attention' },
    words: (kind) => `${kind === 'dot-product' ? 'JAX' : 'PyTorch'}'s ${kind} attention`,
    flag: {
      describe:
        "Attention of the peer's model; several are contrasted. plain of PyTorch if not given, dot-product of JAX always",
    },
  }),
  peerExecution: parameter(z.enum(peerExecutions).default('eager'), {
    ...{ column: 'swept', usual: 'eager', title: "Peer's execution", beside: 'execution' },
    words: (way) => `${peerTitles[peerOfExecution(way)]} ${way}`,
    flag: {
      describe:
        "How the peer runs, PyTorch eager, by torch.compile's modes or as one CUDA graph (whole-graph), JAX by one jit; " +
        'several are contrasted. eager of PyTorch if not given, jit of JAX always',
    },
  }),
  recompute: parameter(recomputeText.default('none'), {
    ...{ column: 'swept', usual: 'none', words: recomputeInWords },
    flag: {
      ...{ default: 'none', completions: ['none', 'block', '2', '4', '8', 'attention-kept', 'recursive'] },
      describe:
        'What the backward pass makes again in place of keeping it: none, block, a number of blocks at a time, attention-kept or recursive',
    },
  }),
  logits: parameter(z.enum(logitsModes).default('whole'), {
    ...{ column: 'swept', usual: 'whole', words: (logits) => `${logits} logits` },
    flag: {
      default: 'whole',
      describe: 'Make the logits of all tokens, or of a chunk at a time with its loss',
    },
  }),
  memoryBudget: parameter(budgetText.default(noBudget), {
    ...{ column: 'swept', usual: noBudget, words: (budget) => `at most ${budget}` },
    flag: {
      ...{ default: noBudget, completions: ['none', '24GiB', '70GiB', '100GiB'] },
      describe: 'What a compiled step may take on a GPU, as 100GiB: it makes again what has to be',
    },
  }),
  mode: parameter(z.enum(modes), { flag: { describe: 'What a step does', default: modes.join(',') } }),
  dtype: parameter(z.enum(e2eDtypes), {
    column: 'swept',
    flag: { describe: 'Precision of the arithmetic', default: 'float32', synonyms: dtypeSynonyms },
  }),
};

const { size: _, shape: __, ...swept } = stepParameters;
const { peerAttention: ___, peerExecution: ____, ...ownSwept } = swept;
/** What is swept of a step besides its model, with a peer's side and without. */
export { ownSwept, swept as stepSwept };

/** What all steps of a sweep share. */
export const stepSettings = {
  warmup: parameter(steps, { flag: { describe: 'Steps before those that count', default: '5' } }),
  steps: parameter(count, { flag: { describe: 'Steps that count', default: '10' } }),
  seed: parameter(steps, { flag: { describe: 'Seed of weights and tokens', default: '0' } }),
};

/**
 * The sweep of steps: what all of them share, and what cells have besides their steps, which `expand` then has to add. A
 * peer's ways are swept only where there is a peer.
 */
export function stepSweepOf<
  const Settings extends Parameters,
  const More extends Parameters = Record<never, never>,
>(settings: Settings, more: More = {} as More) {
  const sweep = sweepOf({ cell: { model: parameter(namedModel), ...swept, ...more }, settings });
  return { ...sweep, cell: { ...stepParameters, ...more }, expand: expandCells };
}

export const e2eSettings = { ...stepSettings, peer: parameter(stepPeersSetting) };
export const e2eSweep = stepSweepOf(e2eSettings);

export const e2eCell = cellSchema(stepParameters);
export type E2eCell = z.infer<typeof e2eCell>;

export type E2eSettings = ValuesOf<typeof e2eSettings> & {
  /** Eager steps are swept too. Left out otherwise, as in records from before it was asked. */
  readonly sweepsEager?: true;
};

type OfPeer = 'peerAttention' | 'peerExecution';
type Saving = 'recompute' | 'logits' | 'memoryBudget';
/** What of a sweep decides its cells. */
type SweptSteps = Omit<ListsOf<typeof swept>, OfPeer | Saving> &
  Partial<Pick<ListsOf<typeof swept>, OfPeer | Saving>> & {
    readonly model: readonly NamedModel[];
    readonly peer?: StepPeersSetting;
  };

/**
 * All combinations: models outermost, modes innermost. Those of a peer are swept only where there is one; budgets of memory are
 * those of compiled steps.
 */
export function expandCells(parameters: SweptSteps): E2eCell[] {
  const { model, dtype, batch, context, attention, execution, mode } = parameters;
  const { recompute = ['none'], logits = ['whole'], memoryBudget = [noBudget] } = parameters;
  const peerWay = peerWays(parameters);
  const saving = { recompute, logits, memoryBudget };
  return combinations({ model, dtype, batch, context, attention, execution, ...saving, peerWay, mode })
    .map(({ model: { size, shape }, peerWay: way, mode: each, ...cell }) => ({
      ...{ size, shape, ...cell, ...way, mode: each },
    }))
    .filter(({ execution: how, memoryBudget: budget }) => how !== 'eager' || budget === noBudget);
}

/** How each peer attends and runs: by those of its ways that were asked for, else by the usual one. */
function peerWays({
  peer,
  peerAttention = [],
  peerExecution = [],
}: SweptSteps): Pick<E2eCell, 'peerAttention' | 'peerExecution'>[] {
  if (!peer) return [{ peerAttention: 'plain', peerExecution: 'eager' }];
  return [peer].flat().flatMap(({ name }) =>
    combinations({
      peerAttention: askedOrUsual(attentionsOf[name], peerAttention),
      peerExecution: askedOrUsual(executionsOf[name], peerExecution),
    }),
  );
}

function askedOrUsual<Way>(own: readonly Way[], asked: readonly Way[]): readonly Way[] {
  const named = asked.filter((way) => own.includes(way));
  return named.length > 0 ? named : own.slice(0, 1);
}

/** `small · context 256 · batch 4 · train-step · float32`, and what is neither plain nor eager. */
export function describeCell(cell: E2eCell): string {
  return cellWords(stepParameters, cell).join(' · ');
}

/** How a step is made, on both sides. */
const ways = [
  ...(['attention', 'execution', 'recompute', 'logits', 'memoryBudget'] as const),
  ...(['peerAttention', 'peerExecution'] as const),
] as const;
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
