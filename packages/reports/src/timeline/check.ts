import { ReportError } from '../model.ts';
import type { Timeline } from '../model.ts';

/** @throws ReportError for times, durations, depths and counter values that cannot be drawn. */
export function checkTimeline({ id, tracks, counters = [] }: Timeline): void {
  for (const { name: track, slices } of tracks) {
    for (const { name, startUs, durationUs, depth = 0 } of slices) {
      const place = `timeline '${id}', track '${track}', slice '${name}'`;
      if (!Number.isFinite(startUs)) throw new ReportError(`${place}: startUs is ${startUs}`);
      if (!(durationUs >= 0 && Number.isFinite(durationUs))) {
        throw new ReportError(`${place}: durationUs is ${durationUs}, not a length of time`);
      }
      if (!(Number.isInteger(depth) && depth >= 0)) {
        throw new ReportError(`${place}: depth is ${depth}, not a whole number from 0`);
      }
    }
  }
  for (const { name, points } of counters) {
    points.forEach(([timeUs, value], index) => {
      const place = `timeline '${id}', counter '${name}', point ${index}`;
      if (!Number.isFinite(timeUs) || !Number.isFinite(value)) {
        throw new ReportError(`${place}: (${timeUs}, ${value}) is not finite`);
      }
      if (index > 0 && timeUs < points[index - 1]![0]) throw new ReportError(`${place}: goes back in time`);
    });
  }
}
