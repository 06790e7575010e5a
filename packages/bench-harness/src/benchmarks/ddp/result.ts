import { z } from 'zod';
import { sampleList } from '../../measuring/statistics.ts';
import { packedProfile } from '../profile/packed-profile.ts';

/** Milliseconds by one rank's clock, one sample a step. */
const rankTimes = z.object({
  /** Forward, backward with its communication, and the optimizer's step, as one: as PyTorch's is timed. */
  stepMs: sampleList,
  /** Forward and backward alone, with communication and, in turn with that, without; null where a step is one program. */
  synchronizedMs: sampleList.nullable(),
  /** Null for sharded parameters, which no pass can do without gathering. */
  localMs: sampleList.nullable(),
  /** Null where a step is one program. */
  optimizerMs: sampleList.nullable(),
  /** The same reductions with nothing running alongside. */
  communicationMs: sampleList,
});

/** Bytes that tensors held on one rank around the first step of the optimizer, and at most. */
const rankMemory = z.object({
  /** Once the model is built and divided; none in older records. */
  builtBytes: z.number().optional(),
  beforeStepBytes: z.number(),
  afterStepBytes: z.number(),
  peakBytes: z.number(),
});

/** Whole steps of PyTorch's, in turn with ours; null where there is no peer. */
const peerTimes = z
  .discriminatedUnion('status', [
    z.object({
      ...{ status: z.literal('ok'), torch: z.string(), stepMs: sampleList },
      /** On the rank that held most; none on the CPU, and in older records. */
      peakBytes: z.number().nullish(),
      /** Its steps came after ours, since both do not fit into a GPU's memory; older records have no such steps. */
      isApart: z.boolean().optional(),
    }),
    z.object({ status: z.literal('failed'), error: z.string() }),
  ])
  .nullable();

/** A forward and backward pass as one rank's profiler saw it. */
const profiledPass = z.discriminatedUnion('status', [
  z.object({
    status: z.literal('ok'),
    /**
     * What its communication is: NCCL's kernels, or the works of Gloo's threads, which are among the kernels on a
     * stream of that name.
     */
    communication: z.enum(['kernels', 'works']),
    /** When it began, by the clock that all processes of the machine share. */
    startMs: z.number(),
    profile: packedProfile,
  }),
  z.object({ status: z.literal('failed'), error: z.string() }),
]);
export type ProfiledPass = z.infer<typeof profiledPass>;

/** What one rank reports. */
export const rankResult = z.object({
  rank: z.int(),
  times: rankTimes,
  memory: rankMemory,
  /** Bytes of the reductions of one step, one element a call. */
  bucketBytes: z.array(z.number()),
  /** Bytes of gradients that a pass copies into their buckets, since the ops that made them could not write there. */
  copiedBytes: z.number(),
  parameterCount: z.number(),
  threads: z.number().nullable(),
  /** From the start of the process to the end of the first step that runs as those that are timed: built and compiled. */
  coldStartMs: z.number(),
  profiledPass,
  peer: peerTimes,
});
export type RankResult = z.infer<typeof rankResult>;

/** What measuring one cell gives: times as the slowest rank of each step has them. */
export const ddpResult = z.object({
  times: rankTimes,
  memory: z.array(rankMemory.extend({ rank: z.int() })).min(1),
  bucketBytes: z.array(z.number()),
  /** Of a pass, as a rank reports it; null in records from before it was counted. */
  copiedBytes: z.number().nullable().default(null),
  parameterCount: z.number(),
  /** One a rank; none in records from before passes were profiled. */
  profiledPasses: z.array(profiledPass).default([]),
  /** Of each rank, on the CPU. */
  threads: z.number().nullable(),
  /** Of the slowest rank, as it reports it; none in older records. */
  coldStartMs: z.number().nullable().default(null),
  peer: peerTimes,
});
export type DdpResult = z.infer<typeof ddpResult>;
