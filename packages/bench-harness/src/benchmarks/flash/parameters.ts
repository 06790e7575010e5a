import { z } from 'zod';
import { attentionKinds } from '../../attention/kinds.ts';
import { torchAttentionNames } from '../../attention/peer-kinds.ts';
import { count, masks, type AttentionShape } from '../../attention/shape.ts';
import { passes } from '../../attention/work.ts';
import { dtypes } from '../../measuring/ceilings.ts';
import { combinations } from '../../parameters/cell-schema.ts';
import { peerSetting } from '../../peer/peer-setting.ts';

/** The whole sweep: every combination of the lists is a cell; all attentions and passes are timed in each. */
export const flashParameters = z.object({
  attentions: z.array(z.enum(attentionKinds)).min(1),
  passes: z.array(z.enum(passes)).min(1),
  batches: z.array(count).min(1),
  heads: z.array(count).min(1),
  headDimensions: z.array(count).min(1),
  sequences: z.array(count).min(1),
  dtypes: z.array(z.enum(dtypes)).min(1),
  masks: z.array(z.enum(masks)).min(1),
  /** Milliseconds of calls before those that count, and of those, for each attention and pass; as `doBench`. */
  warmupMs: z.number().positive(),
  repeatMs: z.number().positive(),
  /** How often the attentions take turns; each turn fills its share of `repeatMs`. */
  rounds: count,
  seed: z.int().nonnegative(),
  peer: peerSetting,
  /** Of the peer; without one they are of no account. */
  peerAttentions: z.array(z.enum(torchAttentionNames)).min(1),
});
export type FlashParameters = z.infer<typeof flashParameters>;

export const flashSettings = flashParameters.pick({
  ...{ attentions: true, passes: true, warmupMs: true, repeatMs: true, rounds: true, seed: true },
  ...{ peer: true, peerAttentions: true },
});
export type FlashSettings = z.infer<typeof flashSettings>;

export type FlashCell = AttentionShape;

/** All combinations, short sequences first. */
export function expandFlashCells(parameters: FlashParameters): FlashCell[] {
  return combinations({
    dtype: parameters.dtypes,
    mask: parameters.masks,
    batch: parameters.batches,
    heads: parameters.heads,
    sequence: parameters.sequences,
    headDimension: parameters.headDimensions,
  });
}

/** The shape and passes of the public leaderboard of attention kernels. */
export const leaderboard = {
  passes: ['both'],
  batches: [1],
  heads: [16],
  headDimensions: [64],
  sequences: [16384],
  dtypes: ['bfloat16'],
  masks: ['causal'],
} as const;

/** The defaults where the command line names nothing: on the CPU what a laptop does in a minute. */
export const flashDefaults = {
  cuda: {
    headDimensions: [16, 32, 64, 128],
    sequences: [128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536],
  },
  cpu: { headDimensions: [16, 64], sequences: [128, 256, 512] },
} as const;
