import { z } from 'zod';
import { sampleList } from '../../measuring/statistics.ts';

export const opResult = z.object({
  /** Host microseconds of one call, one sample a repeat. */
  hostUs: sampleList,
  /** Milliseconds from the start of a process to the op's result; null on the CPU, which compiles no kernels. */
  firstOp: z.object({ coldMs: z.number(), warmMs: z.number() }).nullable(),
});
export type OpResult = z.infer<typeof opResult>;

/** Milliseconds of whole steps, from an idle device to an idle device; see timing.ts. */
const steps = z.object({ deviceMs: sampleList, wallMs: sampleList });

const instrumentedSteps = steps.extend({
  /** What the instrument took outside the step: to start, to flush and to make its result. */
  readOutMs: sampleList,
  /** What it wrote down of each step: kernels, copies and fills; or allocations and frees. */
  events: sampleList,
  /** Over all steps. */
  droppedRecords: z.number(),
});

/** `profilerAtRest` is a process that has profiled before and does not now. */
export const instrumentNames = ['profile', 'profilerAtRest', 'memory'] as const;
export type InstrumentName = (typeof instrumentNames)[number];

/** One sample a round. */
export const instrumentResult = z.object({
  off: steps,
  profile: instrumentedSteps,
  profilerAtRest: instrumentedSteps,
  memory: instrumentedSteps,
});
export type InstrumentResult = z.infer<typeof instrumentResult>;

export const overheadResult = z.union([opResult, instrumentResult]);
export type OverheadResult = z.infer<typeof overheadResult>;
