import { z } from 'zod';
import { torchAttentionNames } from '../../attention/peer-kinds.ts';
import { compilation } from '../../execution/compilation.ts';
import { timeList } from '../../measuring/statistics.ts';
import { failedPeer } from '../../peer/cell-peer.ts';

/** Milliseconds, one sample a pass; see measuring/timing.ts. */
const passTimes = z.object({ deviceMs: timeList, wallMs: timeList });
export type PassTimes = z.infer<typeof passTimes>;

/** The same passes of PyTorch, each by itself also where it is compiled: its program of the backward pass is one of its own. */
const peerPasses = z.object({
  status: z.literal('ok'),
  attention: z.enum(torchAttentionNames),
  ...{ torch: z.string(), python: z.string(), device: z.string() },
  forward: passTimes,
  backward: passTimes,
  /** Null on the CPU, where PyTorch does not count. */
  memory: z.object({
    beforeBackwardBytes: z.number().nullable(),
    peakAllocatedBytes: z.number().nullable(),
  }),
});
const peerResult = z.discriminatedUnion('status', [peerPasses, failedPeer]);
export type AttentionPeer = z.infer<typeof peerResult>;

export const attentionResult = z.object({
  forward: passTimes,
  /** Null for compiled cells: one program runs both passes, and they cannot be told apart. */
  backward: passTimes.nullable(),
  /** Of compiled cells: both passes, one after the other. Eager ones have each by itself. */
  both: passTimes.nullable().default(null),
  /** What compiling took, of the forward pass alone and of both; null for eager cells. */
  compilation: z.object({ forward: compilation, both: compilation }).nullable().default(null),
  /** Bytes that tensors held. */
  memory: z.object({
    /**
     * Between the passes: operands, output, and what is kept for the backward pass. Of a program of both passes what its
     * schedule says, the output only if the backward pass reads it; null in older records of programs.
     */
    beforeBackwardBytes: z.number().nullable(),
    peakForwardBytes: z.number(),
    /** Of both passes. */
    peakAllocatedBytes: z.number(),
  }),
  /** Not there without a peer, and of attentions that it does not have. */
  peer: peerResult.optional(),
});
export type AttentionResult = z.infer<typeof attentionResult>;

/** Both passes, one after the other: of eager cells the sum of the two. */
export function bothPasses({ forward, backward, both }: AttentionResult): PassTimes {
  if (both) return both;
  const sum = (a: readonly number[], b: readonly number[]) => a.map((ms, i) => ms + b[i]!);
  return {
    deviceMs: sum(forward.deviceMs, backward!.deviceMs),
    wallMs: sum(forward.wallMs, backward!.wallMs),
  };
}
