import { z } from 'zod';
import { cellSchema, combinations } from '../../parameters/cell-schema.ts';
import { parameter } from '../../parameters/parameter.ts';
import { peerSetting } from '../../peer/peer-setting.ts';
import { modelShape, namedModel } from '../e2e/parameters.ts';

/** When gradients are reduced: those of DistributedDataParallel. */
export const ddpModes = ['naive', 'flat', 'overlap'] as const;
export const ddpDtypes = ['float32', 'bfloat16'] as const;
/** Whether each rank holds AdamW's whole state or, by ShardedOptimizer, its share. */
export const ddpOptimizers = ['whole', 'sharded'] as const;
export const ddpBackends = ['gloo', 'nccl'] as const;

const count = z.int().positive();

/** The whole sweep: every combination of the lists is a cell. */
export const ddpParameters = z.object({
  models: z.array(namedModel).min(1),
  contexts: z.array(count).min(1),
  batches: z.array(count).min(1),
  dtypes: z.array(z.enum(ddpDtypes)).min(1),
  optimizers: z.array(z.enum(ddpOptimizers)).min(1),
  worldSizes: z.array(count).min(1),
  modes: z.array(z.enum(ddpModes)).min(1),
  backend: z.enum(ddpBackends),
  bucketBytes: count,
  /** Steps that run before those that count. */
  warmup: z.int().nonnegative(),
  steps: count,
  seed: z.int().nonnegative(),
  peer: peerSetting,
});
export type DdpParameters = z.infer<typeof ddpParameters>;
export type DdpSettings = Pick<
  DdpParameters,
  'backend' | 'bucketBytes' | 'warmup' | 'steps' | 'seed' | 'peer'
>;

export const ddpCellParameters = {
  size: parameter(z.string()),
  shape: parameter(modelShape),
  context: parameter(count),
  batch: parameter(count, { description: 'Of each rank.' }),
  dtype: parameter(z.enum(ddpDtypes)),
  optimizer: parameter(z.enum(ddpOptimizers), {
    usual: 'whole',
    words: (optimizer) => `${optimizer} optimizer`,
  }),
  worldSize: parameter(count, {
    title: 'Ranks',
    words: (worldSize) => (worldSize === 1 ? '1 rank' : `${worldSize} ranks`),
  }),
  mode: parameter(z.enum(ddpModes)),
};
export const ddpCell = cellSchema(ddpCellParameters);
export type DdpCell = z.infer<typeof ddpCell>;

/** All combinations: models outermost, the modes of one setting together. */
export function expandDdpCells(parameters: DdpParameters): DdpCell[] {
  return combinations({
    model: parameters.models,
    dtype: parameters.dtypes,
    context: parameters.contexts,
    batch: parameters.batches,
    optimizer: parameters.optimizers,
    worldSize: parameters.worldSizes,
    mode: parameters.modes,
  }).map(({ model: { size, shape }, ...cell }) => ({ size, shape, ...cell }));
}
