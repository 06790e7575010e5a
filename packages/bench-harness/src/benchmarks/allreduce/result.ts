import { z } from 'zod';
import { sampleList, timeList } from '../../measuring/statistics.ts';
import { failedPeer } from '../../peer/cell-peer.ts';
import { placements } from './operations.ts';

/** Milliseconds of a call, one sample each: of the slowest rank, and the mean of all. */
const timing = z.object({
  maxMs: timeList,
  meanMs: sampleList,
  /** Elements that are not what they should be, on all ranks; null where that was not checked. */
  wrong: z.int().nullable(),
});
export type Timing = z.infer<typeof timing>;

export const timings = z.partialRecord(z.enum(placements), timing);
export type Timings = z.infer<typeof timings>;

export const collectiveResult = z.object({
  ours: timings,
  /** Null without a peer. */
  torch: z
    .discriminatedUnion('status', [
      z.object({ status: z.literal('ok'), timings }),
      failedPeer.extend({ status: z.literal('failed') }),
      failedPeer.extend({ status: z.literal('out-of-memory') }),
    ])
    .nullable(),
  /** Bytes a second of one link, each way: of loopback's by a plain copy, of GPUs' by the best of copies and NCCL's sends. */
  roofBytesPerSecond: z.number().nullable(),
});
export type CollectiveResult = z.infer<typeof collectiveResult>;
