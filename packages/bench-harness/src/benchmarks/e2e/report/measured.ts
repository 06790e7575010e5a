import { replaysGraphs } from '../../../execution/kinds.ts';
import { ratioOfMedians, summarize } from '../../../measuring/statistics.ts';
import { workedOut, type Measured, type Measurement } from '../../../report/measurement.ts';
import type { E2eCell } from '../parameters.ts';
import { phaseNames, type E2eResult, type PhaseName } from '../result.ts';

export type StepMeasurement = Measurement<E2eCell, E2eResult>;
export type MeasuredStep = Measured<E2eCell, E2eResult>;

/** Median of each phase, in milliseconds. */
export const phasesMs = workedOut(({ result }: MeasuredStep): Partial<Record<PhaseName, number>> => {
  const known = phaseNames.filter((name) => result.phasesMs[name] !== undefined);
  return Object.fromEntries(known.map((name) => [name, summarize(result.phasesMs[name]!).median]));
});

export function flopsPerSecond({ result, time }: MeasuredStep): number {
  const flops = Object.values(result.work).reduce((sum, phase) => sum + phase.flops, 0);
  return (flops * 1000) / time!.median;
}

/** Bytes a second: what AdamW moves over the median of its phase. Null unless the step has an optimizer. */
export function optimizerTraffic(step: MeasuredStep): number | null {
  const { work } = step.result;
  const { optimizer: milliseconds } = phasesMs(step);
  if (work.optimizer === undefined || milliseconds === undefined) return null;
  return (work.optimizer.bytes * 1000) / milliseconds;
}

/** A peer's side of a step. Null where no peer ran, or where it failed. */
export const peerOf = workedOut(({ result, cell }: MeasuredStep) => {
  const { peer, memory, deviceMs } = result;
  if (peer?.status !== 'ok') return null;
  const counted = replaysGraphs(cell.peerExecution) ? 'peakReservedBytes' : 'peakAllocatedBytes';
  const peakBytes = peer[counted];
  const theirs = peer.backToBackMs ?? peer.deviceMs;
  return {
    /** On the device; of a peer whose steps only the host can time, that of its steps back to back. */
    time: summarize(theirs),
    /** Our time over its. */
    ratio: ratioOfMedians(deviceMs, theirs),
    /** Of memory that was allocated; where it replays CUDA graphs of memory that was reserved, and so is the ratio. */
    peakBytes,
    memoryRatio: peakBytes === null ? null : memory[counted] / peakBytes,
  };
});
