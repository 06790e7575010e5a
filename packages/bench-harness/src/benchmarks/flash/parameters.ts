import { z } from 'zod';
import { attentionKinds } from '../../attention/kinds.ts';
import { torchAttentionNames } from '../../attention/peer-kinds.ts';
import { count, shapeParameters, type AttentionShape } from '../../attention/shape.ts';
import { passes } from '../../attention/work.ts';
import { combinations, sweepSchemas } from '../../parameters/cell-schema.ts';
import { peerSetting } from '../../peer/peer-setting.ts';

/** The whole sweep: every combination of shapes is a cell; all attentions and passes are timed in each. */
export const flashParameters = z.object({
  ...sweepSchemas(shapeParameters),
  attentions: z.array(z.enum(attentionKinds)).min(1),
  passes: z.array(z.enum(passes)).min(1),
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
  const { dtype, mask, batch, heads, sequence, headDimension } = parameters;
  return combinations({ dtype, mask, batch, heads, sequence, headDimension });
}

/** The shape and passes of the public leaderboard of attention kernels. */
export const leaderboard = {
  passes: ['both'],
  batch: [1],
  heads: [16],
  headDimension: [64],
  sequence: [16384],
  dtype: ['bfloat16'],
  mask: ['causal'],
} as const;

/** The defaults where the command line names nothing: on the CPU what a laptop does in a minute. */
export const flashDefaults = {
  cuda: {
    headDimension: [16, 32, 64, 128],
    sequence: [128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536],
  },
  cpu: { headDimension: [16, 64], sequence: [128, 256, 512] },
} as const;
