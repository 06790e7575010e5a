import { z } from 'zod';
import { deviceDescription } from '../records/environment.ts';
import { diagnosisEntry } from './diagnosis.ts';

/** What `probe-device` finds. */
export const probeResult = z.object({
  /** Null when the device cannot be used. */
  device: deviceDescription.nullable(),
  /** Why it cannot. */
  problem: z.string().nullable(),
  diagnosis: z.array(diagnosisEntry),
});
export type ProbeResult = z.infer<typeof probeResult>;
