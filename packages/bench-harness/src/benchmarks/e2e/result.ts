import { z } from 'zod';
import { sampleList, timeList } from '../../measuring/statistics.ts';
import { compilation } from '../../execution/compilation.ts';
import { failedPeer } from '../../peer/cell-peer.ts';
import { jaxReadyReply, readyReply } from '../../peer/step-peer.ts';

export const phaseNames = ['forward', 'backward', 'optimizer'] as const;
export type PhaseName = (typeof phaseNames)[number];

/** Milliseconds, one sample a step; see timing.ts. */
const stepTimes = z.object({
  deviceMs: timeList,
  wallMs: sampleList,
  phasesMs: z.partialRecord(z.enum(phaseNames), sampleList),
});

const phaseWork = z.object({ flops: z.number(), bytes: z.number() });

const peerResult = z.discriminatedUnion('status', [
  stepTimes.extend({
    status: z.literal('ok'),
    ...readyReply.extend(jaxReadyReply.shape).partial({ torch: true, jax: true, attention: true }).shape,
    /** Of as many steps, each begun before the one before had ended: JAX's. Its steps one by one only the host can time. */
    backToBackMs: timeList.optional(),
    /** Of the last step, where the peer looked at it. */
    loss: z.number().nullish(),
    /** Null on the CPU, where peers do not count. JAX's peaks are those of its process, compilation included. */
    peakAllocatedBytes: z.number().nullable(),
    peakReservedBytes: z.number().nullable(),
  }),
  failedPeer,
]);
export type PeerResult = z.infer<typeof peerResult>;

/** What measuring one cell of the end-to-end benchmark gives. */
export const e2eResult = stepTimes.extend({
  parameterCount: z.number(),
  /** The work of each phase, as counted from the model's shape; see phase-work.ts. */
  work: z.partialRecord(z.enum(phaseNames), phaseWork),
  memory: z.object({ peakAllocatedBytes: z.number(), peakReservedBytes: z.number() }),
  /** The loss of the last step; null where only the forward pass runs. */
  loss: z.number().nullable(),
  /** What it took to compile the step; null for eager steps. */
  compilation: compilation.nullable().default(null),
  /** Of eager steps of the same model in turn with compiled ones; null where they were not. */
  eagerInTurn: stepTimes.nullable().default(null),
  peer: peerResult.nullable(),
  /** Set where the peer ran after all of ours, because both at once do not fit on the GPU. */
  peerApart: z.literal(true).optional(),
});
export type E2eResult = z.infer<typeof e2eResult>;
