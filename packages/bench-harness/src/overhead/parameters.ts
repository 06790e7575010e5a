import { z } from 'zod';

/** The eager ops whose host time is measured. */
export const eagerOpNames = ['add', 'mul-with-tape', 'softmax', 'matmul'] as const;
export type EagerOpName = (typeof eagerOpNames)[number];

export const overheadCell = z.object({ op: z.enum(eagerOpNames) });
export type OverheadCell = z.infer<typeof overheadCell>;

export const overheadParameters = z.object({
  ops: z.array(z.enum(eagerOpNames)).min(1),
  /** Calls of one sample: as many as the device's queue takes without making the host wait. */
  calls: z.int().positive(),
  /** Samples. */
  repeats: z.int().positive(),
});
export type OverheadParameters = z.infer<typeof overheadParameters>;
export type OverheadSettings = Pick<OverheadParameters, 'calls' | 'repeats'>;

export const overheadResult = z.object({
  /** Host microseconds of one call, one sample a repeat. */
  hostUs: z.array(z.number()),
  /** Milliseconds from the start of a process to the op's result; null on the CPU, which compiles no kernels. */
  firstOp: z.object({ coldMs: z.number(), warmMs: z.number() }).nullable(),
});
export type OverheadResult = z.infer<typeof overheadResult>;
