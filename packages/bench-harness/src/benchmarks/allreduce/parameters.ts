import { z } from 'zod';
import { cellSchema, combinations } from '../../parameters/cell-schema.ts';
import { parameter } from '../../parameters/parameter.ts';
import { peerSetting } from '../../peer/peer-setting.ts';
import { collectiveDTypes, collectiveOps } from './operations.ts';
import { sizeInWords } from './size-in-words.ts';

export const backends = ['gloo', 'nccl'] as const;
export type CollectiveBackend = (typeof backends)[number];

export const collectiveParameters = {
  op: parameter(z.enum(collectiveOps)),
  backend: parameter(z.enum(backends), { emphasis: 'strong' }),
  ranks: parameter(z.int().min(1), { words: (ranks) => (ranks === 1 ? '1 rank' : `${ranks} ranks`) }),
  /** Of all pieces together, as in nccl-tests. */
  bytes: parameter(z.int().positive(), {
    ...{ title: 'Size', words: sizeInWords },
    shown: { key: 'size', text: sizeInWords },
  }),
  dtype: parameter(z.enum(collectiveDTypes)),
};
export const collectiveCell = cellSchema(collectiveParameters);
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

export const collectiveSweep = collectiveSettings.extend({
  ops: z.array(z.enum(collectiveOps)).min(1),
  backends: z.array(z.enum(backends)).min(1),
  ranks: z.array(z.int().min(1)).min(1),
  sizes: z.array(z.int().positive()).min(1),
  dtypes: z.array(z.enum(collectiveDTypes)).min(1),
});
export type CollectiveParameters = z.infer<typeof collectiveSweep>;

export function expandCollectiveCells(
  parameters: Pick<CollectiveParameters, 'ops' | 'backends' | 'ranks' | 'sizes' | 'dtypes'>,
): CollectiveCell[] {
  const { ops: op, dtypes: dtype, ranks, sizes: bytes, backends: backend } = parameters;
  return combinations({ op, dtype, ranks, bytes, backend });
}
