import { z } from 'zod';
import { attentionKinds } from '../../attention/kinds.ts';
import { torchAttentionNames } from '../../attention/peer-kinds.ts';
import { count, type AttentionShape } from '../../attention/shape.ts';
import { passes } from '../../attention/work.ts';
import { cellSchema } from '../../parameters/cell-schema.ts';
import { parameter } from '../../parameters/parameter.ts';
import { peerSetting } from '../../peer/peer-setting.ts';

/** What all cells share: each times all attentions and passes. */
export const flashSettingParameters = {
  attentions: parameter(z.array(z.enum(attentionKinds)).min(1), {
    flag: {
      ...{ name: 'attention', default: 'plain,flash' },
      describe: 'In separate ops, by the kernels of @roofline/flash-attn, or its algorithm in ops',
    },
  }),
  passes: parameter(z.array(z.enum(passes)).min(1), {
    flag: { name: 'pass', describe: 'What is timed; all if not given' },
  }),
  warmupMs: parameter(z.number().positive(), {
    flag: { default: '25', describe: 'Milliseconds of calls before those that count, in each turn' },
  }),
  repeatMs: parameter(z.number().positive(), {
    flag: { default: '100', describe: 'Milliseconds of calls that count, of each attention and pass' },
  }),
  /** Each turn fills its share of `repeatMs`. */
  rounds: parameter(count, { flag: { default: '3', describe: 'Turns that the attentions take' } }),
  seed: parameter(z.int().nonnegative(), { flag: { default: '0', describe: 'Seed of the operands' } }),
  peer: parameter(peerSetting),
  /** Of the peer; unused without one. */
  peerAttentions: parameter(z.array(z.enum(torchAttentionNames)).min(1), {
    flag: { name: 'peer-attention', describe: 'Those of PyTorch; all if not given' },
  }),
};
export const flashSettings = cellSchema(flashSettingParameters);
export type FlashSettings = z.infer<typeof flashSettings>;

export type FlashCell = AttentionShape;

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
