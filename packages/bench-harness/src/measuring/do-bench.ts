import type { TimedDevice } from './timing.ts';

export interface DoBenchOptions {
  /** Milliseconds that the calls before those that count fill, by an estimate; at least one call. */
  readonly warmupMs: number;
  /** Milliseconds that the calls that count fill, likewise. */
  readonly repeatMs: number;
  /** Runs before each call, outside of its time. */
  readonly beforeEach?: () => void;
  /** Runs before each call that counts, outside of its time: writes more than the L2 cache holds. */
  readonly flush?: () => void;
}

const ESTIMATES = 5;

/**
 * Milliseconds of each call of `work` between two events on the device, as Triton's `triton.testing.do_bench` takes
 * them: five calls give an estimate, which says how many fill the times asked for; and the host does not wait between
 * calls, so that kernels shorter than their launches are timed as they run in a queue.
 */
export function doBench<Event extends { elapsedMs(earlier: Event): number }>(
  device: TimedDevice<Event>,
  work: () => void,
  { warmupMs, repeatMs, beforeEach = () => {}, flush = () => {} }: DoBenchOptions,
): number[] {
  const prepare = (): void => {
    beforeEach();
    flush();
  };
  prepare();
  work();
  device.synchronize();
  const start = device.recordEvent();
  for (let call = 0; call < ESTIMATES; call++) {
    prepare();
    work();
  }
  const end = device.recordEvent();
  device.synchronize();
  const estimateMs = end.elapsedMs(start) / ESTIMATES;
  const callsIn = (durationMs: number): number => Math.max(1, Math.floor(durationMs / estimateMs));
  for (let call = callsIn(warmupMs); call > 0; call--) {
    beforeEach();
    work();
  }
  const marks = Array.from({ length: callsIn(repeatMs) }, () => {
    prepare();
    const start = device.recordEvent();
    work();
    return { start, end: device.recordEvent() };
  });
  device.synchronize();
  return marks.map(({ start, end }) => end.elapsedMs(start));
}
