import { z } from 'zod';
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

export const ddpCell = z.object({
  size: z.string(),
  shape: modelShape,
  context: count,
  /** Of each rank. */
  batch: count,
  dtype: z.enum(ddpDtypes),
  optimizer: z.enum(ddpOptimizers),
  worldSize: count,
  mode: z.enum(ddpModes),
});
export type DdpCell = z.infer<typeof ddpCell>;

/** All combinations: models outermost, the modes of one setting together. */
export function expandDdpCells(parameters: DdpParameters): DdpCell[] {
  const { models, dtypes, contexts, batches, optimizers, worldSizes, modes } = parameters;
  return models.flatMap(({ size, shape }) =>
    dtypes.flatMap((dtype) =>
      contexts.flatMap((context) =>
        batches.flatMap((batch) =>
          optimizers.flatMap((optimizer) =>
            worldSizes.flatMap((worldSize) =>
              modes.map((mode) => ({ size, shape, context, batch, dtype, optimizer, worldSize, mode })),
            ),
          ),
        ),
      ),
    ),
  );
}

/** `small · context 256 · batch 4 · float32 · 2 ranks · overlap`, and an optimizer that is sharded. */
export function describeDdpCell({
  size,
  context,
  batch,
  dtype,
  optimizer,
  worldSize,
  mode,
}: DdpCell): string {
  const words = [
    size,
    `context ${context}`,
    `batch ${batch}`,
    dtype,
    worldSize === 1 ? '1 rank' : `${worldSize} ranks`,
    mode,
  ];
  return [...words, ...(optimizer === 'whole' ? [] : ['sharded optimizer'])].join(' · ');
}
