import { z } from 'zod';
import { sampleList } from '../../measuring/statistics.ts';
import { compilation } from '../../execution/compilation.ts';
import { failedPeer } from '../../peer/cell-peer.ts';
import { profileReply, readyReply } from '../../peer/step-peer.ts';
import { packedProfile } from './packed-profile.ts';

const peerProfile = z.discriminatedUnion('status', [
  readyReply.extend({
    status: z.literal('ok'),
    /** One profile a step. */
    steps: z.array(profileReply).min(1),
    /** Device time of the plain steps between them. */
    plainMs: sampleList,
  }),
  failedPeer,
]);
export type PeerProfile = z.infer<typeof peerProfile>;
export type MeasuredPeer = Extract<PeerProfile, { status: 'ok' }>;

/** What profiling one cell gives. */
export const profileResult = z.object({
  /** One profile a step. */
  steps: z.array(packedProfile).min(1),
  /** Device time of each profiled step, and of the plain steps between them: what profiling costs. */
  profiledMs: sampleList,
  plainMs: sampleList,
  /** The process and thread that queued the work. */
  pid: z.number(),
  tid: z.number(),
  /** What it took to compile the step; null for eager steps. */
  compilation: compilation.nullable().default(null),
  /** PyTorch's profile of the same step; null where none was asked for. */
  peer: peerProfile.nullable().default(null),
});
export type ProfileResult = z.infer<typeof profileResult>;
