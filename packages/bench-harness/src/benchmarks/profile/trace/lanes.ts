/** Something on a track. Times are microseconds. */
export interface Slice {
  readonly startUs: number;
  readonly endUs: number;
  /** Distinguishes it from the others; those inside it name it. */
  readonly index: number;
  readonly outer: number | null;
}

const toNs = (us: number) => Math.round(us * 1000);

/**
 * For each slice the lane that it is drawn in, the first being 0. Slices of a lane lie apart or inside each other, to the
 * nanosecond: viewers drop one that reaches out of another. One inside another is in its lane if there is room for it.
 * Slices come in the order of their start, each before those inside it.
 */
export function lanesOf(slices: readonly Slice[]): number[] {
  const lanes: Lane[] = [];
  const laneOf = new Map<number, number>();
  return slices.map((slice) => {
    const { index, outer } = slice;
    const first = (outer === null ? undefined : laneOf.get(outer)) ?? 0;
    const found = lanes.findIndex((ends, lane) => lane >= first && fits(slice, ends));
    const lane = found < 0 ? lanes.push([]) - 1 : found;
    lanes[lane]!.push(toNs(slice.endUs));
    laneOf.set(index, lane);
    return lane;
  });
}

/** Nanoseconds at which the slices end that are open, the innermost last. */
type Lane = number[];

function fits({ startUs, endUs, outer }: Slice, ends: Lane): boolean {
  while (ends.length > 0 && ends.at(-1)! <= toNs(startUs)) ends.pop();
  return ends.length === 0 || (outer !== null && toNs(endUs) <= ends.at(-1)!);
}
