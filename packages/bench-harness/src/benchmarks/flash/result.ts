import { z } from 'zod';
import { attentionKinds } from '../../attention/kinds.ts';
import { torchAttentionNames } from '../../attention/peer-kinds.ts';
import { timeList } from '../../measuring/statistics.ts';
import { passes } from '../../attention/work.ts';
import { readyReply } from '../../peer/step-peer.ts';

const outcome = z.discriminatedUnion('status', [
  z.object({
    status: z.literal('ok'),
    /** Milliseconds, one sample a call. */
    samplesMs: z.partialRecord(z.enum(passes), timeList),
    /** Most bytes that one forward and backward pass held, operands included; null where they are not counted. */
    peakBytes: z.number().nullable(),
  }),
  z.object({ status: z.enum(['not-available', 'out-of-memory', 'failed']), reason: z.string() }),
]);
export type Outcome = z.infer<typeof outcome>;

/** One attention of a cell, ours or PyTorch's, and its outcome. */
const timed = z.discriminatedUnion('side', [
  z.object({ side: z.literal('ours'), attention: z.enum(attentionKinds), outcome }),
  z.object({ side: z.literal('torch'), attention: z.enum(torchAttentionNames), outcome }),
]);
export type Timed = z.infer<typeof timed>;

export const flashResult = z.object({
  timed: z.array(timed).min(1),
  /** Bytes written between samples to flush the L2 cache; 0 where nothing was. */
  flushedBytes: z.number(),
  /** Of PyTorch; null where it did not run, or did not start. */
  torch: readyReply.nullable(),
});
export type FlashResult = z.infer<typeof flashResult>;
