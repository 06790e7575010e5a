import type { Timeline } from '@roofline/reports';
import { outermostOfEachName, type KernelSpan } from '../kernel-spans.ts';

/** A range from the start of the first kernel inside it to the end of the last. */
export interface RangeSlice {
  readonly name: string;
  readonly depth: number;
  readonly startUs: number;
  readonly endUs: number;
  /** The opening, and the one around it. */
  readonly index: number;
  readonly outer: number | null;
}

/** Ranges as they lie on the device's time, each before those inside it. The spans are of one step. */
export function rangeSlices(spans: readonly KernelSpan[]): RangeSlice[] {
  const slices = new Map<number, { -readonly [K in keyof RangeSlice]: RangeSlice[K] }>();
  for (const { ranges, startUs, durationUs } of spans) {
    const endUs = startUs + durationUs;
    outermostOfEachName(ranges).forEach(({ name, index }, depth, path) => {
      const slice = slices.get(index);
      if (slice) {
        slice.startUs = Math.min(slice.startUs, startUs);
        slice.endUs = Math.max(slice.endUs, endUs);
      } else {
        slices.set(index, { name, depth, startUs, endUs, index, outer: path[depth - 1]?.index ?? null });
      }
    });
  }
  return [...slices.values()].sort((a, b) => a.startUs - b.startUs || a.depth - b.depth);
}

/** What tensors held when each kernel's op began, at the kernel's start. */
export function memoryPoints(spans: readonly KernelSpan[]): [timeUs: number, bytes: number][] {
  const points: [number, number][] = [];
  for (const { startUs, op } of spans) {
    if (op && op.allocatedBytes !== points.at(-1)?.[1]) points.push([startUs, op.allocatedBytes]);
  }
  return points;
}

/** One step, to zoom into: ranges above, one track a stream, memory below. */
export function stepTimeline(spans: readonly KernelSpan[], id: string, title: string): Timeline {
  return {
    kind: 'timeline',
    id,
    title,
    caption:
      'The last profiled step. A range reaches from the start of its first kernel to the end of its last.',
    tracks: [
      {
        name: 'Ranges',
        slices: rangeSlices(spans).map(({ name, depth, startUs, endUs }) => ({
          name,
          depth,
          startUs,
          durationUs: endUs - startUs,
        })),
      },
      ...[...Map.groupBy(spans, ({ stream }) => stream)].map(([name, group]) => ({
        name,
        slices: group.map(({ name, startUs, durationUs, op }) => ({
          name,
          startUs,
          durationUs,
          ...(op ? { category: op.name } : {}),
        })),
      })),
    ],
    counters: [{ name: 'Allocated', unit: 'bytes', points: memoryPoints(spans) }],
  };
}
