import { z } from 'zod';

/** What it took to compile a function: the calls until one ran as a program, and their wall time. */
export const compilation = z.object({ calls: z.number(), durationMs: z.number() });
export type Compilation = z.infer<typeof compilation>;
