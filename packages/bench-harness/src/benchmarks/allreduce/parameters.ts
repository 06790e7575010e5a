import { z } from 'zod';
import { peerSetting } from '../../peer/peer-setting.ts';
import { collectiveDTypes, collectiveOps } from './operations.ts';

export const backends = ['gloo', 'nccl'] as const;
export type CollectiveBackend = (typeof backends)[number];

export const collectiveCell = z.object({
  op: z.enum(collectiveOps),
  backend: z.enum(backends),
  ranks: z.int().min(1),
  bytes: z.int().positive(),
  dtype: z.enum(collectiveDTypes),
});
export type CollectiveCell = z.infer<typeof collectiveCell>;

export const collectiveSettings = z.object({
  /** Calls of a turn that are not timed, and those that are. */
  warmup: z.int().nonnegative(),
  iterations: z.int().positive(),
  /** Turns of each side and placement. */
  rounds: z.int().positive(),
  peer: peerSetting,
});
export type CollectiveSettings = z.infer<typeof collectiveSettings>;

export const collectiveParameters = collectiveSettings.extend({
  ops: z.array(z.enum(collectiveOps)).min(1),
  backends: z.array(z.enum(backends)).min(1),
  ranks: z.array(z.int().min(1)).min(1),
  sizes: z.array(z.int().positive()).min(1),
  dtypes: z.array(z.enum(collectiveDTypes)).min(1),
});
export type CollectiveParameters = z.infer<typeof collectiveParameters>;

export function expandCollectiveCells(
  parameters: Pick<CollectiveParameters, 'ops' | 'backends' | 'ranks' | 'sizes' | 'dtypes'>,
): CollectiveCell[] {
  const { ops, ranks, sizes, dtypes } = parameters;
  return ops.flatMap((op) =>
    dtypes.flatMap((dtype) =>
      ranks.flatMap((count) =>
        sizes.flatMap((bytes) =>
          parameters.backends.map((backend) => ({ op, backend, ranks: count, bytes, dtype })),
        ),
      ),
    ),
  );
}
