import type { Timeline } from '../model.ts';

/** From the first slice or point to the last, in microseconds. */
export function timeSpan({ tracks, counters = [] }: Timeline): [number, number] {
  let [start, end] = [Infinity, -Infinity];
  const include = (from: number, to: number) => {
    start = Math.min(start, from);
    end = Math.max(end, to);
  };
  for (const { slices } of tracks) {
    for (const { startUs, durationUs } of slices) include(startUs, startUs + durationUs);
  }
  for (const { points } of counters) for (const [timeUs] of points) include(timeUs, timeUs);
  if (start > end) return [0, 1];
  return [start, end > start ? end : start + 1];
}
