import { passTime, type PassTime } from '../../../attention/pass-time.ts';
import type { Pass } from '../../../attention/work.ts';
import { workedOut, type Measured, type Measurement } from '../../../report/measurement.ts';
import type { AttentionCell } from '../parameters.ts';
import { bothPasses, type AttentionResult } from '../result.ts';

export type AttentionMeasurement = Measurement<AttentionCell, AttentionResult>;
export type MeasuredAttention = Measured<AttentionCell, AttentionResult>;

const timesOf = workedOut(({ cell, result, record }: MeasuredAttention) => {
  const { forward, backward } = result;
  const of = (pass: Pass, samplesMs: readonly number[]) =>
    passTime({ ...cell, heads: 1 }, pass, samplesMs, record);
  return {
    forward: of('forward', forward.deviceMs),
    backward: backward && of('backward', backward.deviceMs),
    both: of('both', bothPasses(result).deviceMs),
  };
});

/** Null for the backward pass where a program runs both. */
export function timeOf(each: MeasuredAttention, pass: Pass): PassTime | null {
  return timesOf(each)[pass];
}
