import type { Slice, Track } from '../model.ts';

/** The slices of a track by line, each line in the order of time. */
export function rowsOf({ slices }: Track): Slice[][] {
  const rows: Slice[][] = [];
  const ends: number[] = [];
  const ordered = slices.toSorted((a, b) => a.startUs - b.startUs || b.durationUs - a.durationUs);
  for (const slice of ordered) {
    const { startUs, durationUs, depth = firstFree(ends, startUs) } = slice;
    while (rows.length <= depth) {
      rows.push([]);
      ends.push(-Infinity);
    }
    rows[depth]!.push(slice);
    ends[depth] = Math.max(ends[depth]!, startUs + durationUs);
  }
  return rows;
}

/** A slice that lies within another comes below it, as one that begins before another has ended. */
function firstFree(ends: readonly number[], startUs: number): number {
  const free = ends.findIndex((end) => end <= startUs);
  return free === -1 ? ends.length : free;
}
