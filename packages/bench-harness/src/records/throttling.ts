import { z } from 'zod';

const share = z.number().min(0).max(1).nullable();

/** What held clocks down while something was measured. Null is what the machine does not say. */
export const throttling = z.object({
  /**
   * For which share of the time a limit of power, heat, or the board's hardware (its supply, an external brake) held the
   * GPU's clocks down: by the driver's counters, or where it has none by readings each second.
   */
  gpu: z.object({ power: share, thermal: share, hardware: share }).nullable(),
  /** How often heat slowed a core of the CPU, or a whole CPU, down: the one of them where that happened most. */
  cpuSlowdowns: z.number().nullable(),
});
export type Throttling = z.infer<typeof throttling>;
