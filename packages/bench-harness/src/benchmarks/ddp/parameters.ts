import { z } from 'zod';
import { cellSchema } from '../../parameters/cell-schema.ts';
import { parameter, withFlag } from '../../parameters/parameter.ts';
import { sweepOf, type ValuesOf } from '../../parameters/sweep.ts';
import { noBudget } from '../../memory-saving/kinds.ts';
import { peerSetting } from '../../peer/peer-setting.ts';
import { modelShape, namedModel } from '../../model/shape.ts';
import { executions } from '../../execution/kinds.ts';
import { stepParameters, stepSettings } from '../e2e/parameters.ts';

/** When gradients are reduced: those of DistributedDataParallel. */
export const replicatedModes = ['naive', 'flat', 'overlap'] as const;
/**
 * Parameters split over all ranks by `fullyShard`, or over half of them, of which there are two; or layers divided by `parallelize`
 * over all ranks, or over pairs, over which parameters are split; or sequences divided by `contextParallel` over all ranks, as parameters are.
 */
export const shardedModes = ['fsdp', 'hybrid', 'tensor', 'fsdp-tensor', 'fsdp-context'] as const;
export const ddpModes = [...replicatedModes, ...shardedModes] as const;
export type DdpMode = (typeof ddpModes)[number];

export function isSharded(mode: DdpMode): mode is (typeof shardedModes)[number] {
  return (shardedModes as readonly string[]).includes(mode);
}

interface Ranks {
  readonly mode: DdpMode;
  readonly worldSize: number;
}

/** The ranks that share the parameters of a cell; 1 where each has all. */
export function shardsOf({ mode, worldSize }: Ranks): number {
  if (!isSharded(mode)) return 1;
  return mode === 'hybrid' ? worldSize / 2 : worldSize;
}

/** The ranks that share each layer of a cell, and its tokens. */
export function tensorRanksOf({ mode, worldSize }: Ranks): number {
  if (mode === 'tensor') return worldSize;
  return mode === 'fsdp-tensor' ? 2 : 1;
}

/** The ranks that share each sequence of a cell, of which each has some tokens. */
export function contextRanksOf({ mode, worldSize }: Ranks): number {
  return mode === 'fsdp-context' ? worldSize : 1;
}

/** Whether ranks exchange activations within a pass, not parameters and gradients alone. */
export function sendsActivations(ranks: Ranks): boolean {
  return tensorRanksOf(ranks) > 1 || contextRanksOf(ranks) > 1;
}

export const ddpDtypes = ['float32', 'bfloat16'] as const;
/** Whether each rank holds AdamW's whole state or, by ShardedOptimizer, its share. */
export const ddpOptimizers = ['whole', 'sharded'] as const;
export const ddpBackends = ['gloo', 'nccl'] as const;

const count = z.int().positive();

export const ddpCellParameters = {
  size: parameter(z.string()),
  shape: parameter(modelShape),
  context: parameter(count, { flag: { ...stepParameters.context.flag!, default: '64' } }),
  batch: parameter(count, { description: 'Of each rank.', flag: stepParameters.batch.flag! }),
  dtype: parameter(z.enum(ddpDtypes), { flag: stepParameters.dtype.flag! }),
  attention: stepParameters.attention,
  recompute: stepParameters.recompute,
  logits: stepParameters.logits,
  memoryBudget: stepParameters.memoryBudget,
  execution: parameter(z.enum(executions).default('eager'), {
    ...{ column: 'swept', usual: 'eager' },
    flag: {
      default: 'eager',
      describe:
        'Run steps op by op, or as compiled programs with their communication in them, autotuned with the algorithm of each ' +
        'product timed',
    },
  }),
  optimizer: parameter(z.enum(ddpOptimizers), {
    ...{ usual: 'whole', words: (optimizer) => `${optimizer} optimizer` },
    flag: { default: 'whole', describe: "AdamW's state: whole on each rank, or sharded" },
  }),
  worldSize: parameter(count, {
    ...{ title: 'Ranks', words: (worldSize) => (worldSize === 1 ? '1 rank' : `${worldSize} ranks`) },
    flag: {
      ...{ name: 'nproc', default: '2', describe: 'Ranks, each a process of this machine' },
      completions: ['1', '2', '4'],
    },
  }),
  mode: parameter(z.enum(ddpModes), {
    flag: {
      default: replicatedModes.join(','),
      describe:
        'When gradients are reduced: one by one, in one buffer, or in buckets during the backward pass; or parameters sharded, ' +
        'over all ranks, or over half of them, twice; or layers divided over all ranks, or over pairs of a sharded model. ' +
        'Ranks that share layers take the batches of all of them together. Or parameters sharded and each sequence divided, over all ' +
        'ranks, which have one batch',
    },
  }),
};
export const ddpCell = cellSchema(ddpCellParameters);
export type DdpCell = z.infer<typeof ddpCell>;

const { size: _, shape: __, ...ddpSwept } = ddpCellParameters;
export { ddpSwept };

const { warmup, steps, seed } = stepSettings;
export const ddpSettings = {
  backend: parameter(z.enum(ddpBackends), {
    flag: { describe: 'gloo on the CPU, nccl on GPUs; as --device says if not given' },
  }),
  /** Null for what DistributedDataParallel takes, here and in PyTorch. */
  bucketBytes: parameter(count.nullable()),
  warmup: withFlag(warmup, { default: '3' }),
  ...{ steps, seed },
  peer: parameter(peerSetting),
};
export type DdpSettings = ValuesOf<typeof ddpSettings>;

const sweep = sweepOf({
  cell: { model: parameter(namedModel), ...ddpSwept },
  settings: ddpSettings,
  // The modes of one setting together.
  nested: [
    ...(['model', 'dtype', 'context', 'batch', 'attention', 'recompute', 'logits', 'memoryBudget'] as const),
    ...(['optimizer', 'worldSize', 'execution', 'mode'] as const),
  ],
});
/** The whole sweep: every combination of the lists is a cell. */
export const ddpSweep = {
  ...sweep,
  cell: ddpCellParameters,
  expand: (parameters: z.output<typeof sweep.parameters>): DdpCell[] =>
    sweep
      .expand(parameters)
      .map(({ model, ...cell }) => ({ ...model, ...cell }))
      .filter(isPossible),
};

/** Sharded parameters have no optimizer to shard besides; halves and pairs need two ranks each; budgets are of programs. */
function isPossible({ mode, optimizer, worldSize, execution, memoryBudget }: DdpCell): boolean {
  if (execution === 'eager' && memoryBudget !== noBudget) return false;
  if (isSharded(mode) && optimizer === 'sharded') return false;
  const isTwofold = mode === 'hybrid' || mode === 'fsdp-tensor';
  return !isTwofold || (worldSize >= 4 && worldSize % 2 === 0);
}
