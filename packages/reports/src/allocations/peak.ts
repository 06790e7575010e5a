import type { Allocation } from '../model.ts';

export interface Peak {
  /** When most bytes were live for the first time; 0 where nothing was allocated. */
  timeUs: number;
  bytes: number;
  /** What was live then, the largest first. */
  live: Allocation[];
}

/** What is freed at the moment of an allocation makes room for it. */
export function findPeak(allocations: readonly Allocation[]): Peak {
  const changes = allocations.flatMap(({ bytes, startUs, endUs }): [number, number][] =>
    endUs === null
      ? [[startUs, bytes]]
      : endUs === startUs
        ? []
        : [
            [startUs, bytes],
            [endUs, -bytes],
          ],
  );
  changes.sort(([time, change], [otherTime, otherChange]) => time - otherTime || change - otherChange);
  const peak = { timeUs: 0, bytes: 0 };
  let held = 0;
  for (const [timeUs, change] of changes) {
    held += change;
    if (held > peak.bytes) Object.assign(peak, { timeUs, bytes: held });
  }
  const live = allocations.filter(
    ({ startUs, endUs }) => startUs <= peak.timeUs && (endUs === null || endUs > peak.timeUs),
  );
  return { ...peak, live: live.sort((a, b) => b.bytes - a.bytes) };
}
