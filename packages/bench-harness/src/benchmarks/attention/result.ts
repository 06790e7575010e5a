import { z } from 'zod';
import { sampleList } from '../../measuring/statistics.ts';

/** Milliseconds, one sample a pass; see measuring/timing.ts. */
const passTimes = z.object({ deviceMs: sampleList, wallMs: sampleList });
export type PassTimes = z.infer<typeof passTimes>;

export const attentionResult = z.object({
  forward: passTimes,
  backward: passTimes,
  /** Bytes that tensors held. */
  memory: z.object({
    /** Between the forward and the backward pass: operands, output, and what is kept for the backward pass. */
    beforeBackwardBytes: z.number(),
    peakForwardBytes: z.number(),
    /** Of both passes. */
    peakAllocatedBytes: z.number(),
  }),
});
export type AttentionResult = z.infer<typeof attentionResult>;
