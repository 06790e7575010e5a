import { z } from 'zod';
import { packedProfile } from './packed-profile.ts';

const samples = z.array(z.number());

/** What profiling one cell gives. */
export const profileResult = z.object({
  /** One profile a step. */
  steps: z.array(packedProfile).min(1),
  /** Device time of each profiled step, and of the plain steps between them: what profiling costs. */
  profiledMs: samples,
  plainMs: samples,
  /** The process and thread that queued the work. */
  pid: z.number(),
  tid: z.number(),
});
export type ProfileResult = z.infer<typeof profileResult>;
