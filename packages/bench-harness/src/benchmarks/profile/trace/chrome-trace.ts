import type { KernelSpan } from '../kernel-spans.ts';
import { type Slice, lanesOf } from './lanes.ts';
import { type RangeSlice, memoryPoints, rangeSlices } from '../report/timeline.ts';

/** An event of Chrome's trace format; `ts` and `dur` are microseconds. */
interface TraceEvent {
  readonly name: string;
  readonly cat?: string;
  readonly ph: 'X' | 'C' | 'M';
  readonly ts?: number;
  readonly dur?: number;
  readonly pid: number;
  readonly tid?: number;
  readonly args: Readonly<Record<string, string | number>>;
}

export interface ChromeTrace {
  readonly displayTimeUnit: 'ns';
  readonly traceEvents: readonly TraceEvent[];
}

/**
 * One step of a process in the format of chrome://tracing, which Perfetto reads: ranges in a track above, one track for
 * each stream, memory as a counter. Slices of a track lie apart or inside each other, as Perfetto wants them: what
 * reaches out of another is in a further track of the same name, `cuda:0 stream 7 (2)`.
 */
export function chromeTrace(
  spans: readonly KernelSpan[],
  pid: number,
  processName = 'roofline',
): ChromeTrace {
  const ranges = rangeSlices(spans);
  const streams = [...Map.groupBy(spans, ({ stream }) => stream)].sort(([a], [b]) => (a < b ? -1 : 1));
  const tracks = [
    ...tracksOf('Ranges', ranges, lanesOf(ranges), (slice, tid) => rangeEvent(slice, pid, tid)),
    ...streams.flatMap(([stream, group]) => {
      const inOrder = group.toSorted((a, b) => a.startUs - b.startUs);
      return tracksOf(stream, inOrder, lanesOf(inOrder.map(asSlice)), (span, tid) =>
        kernelEvent(span, pid, tid),
      );
    }),
  ];
  return {
    displayTimeUnit: 'ns',
    traceEvents: [
      named('process_name', pid, 0, processName),
      ...tracks.map(({ name }, i) => named('thread_name', pid, i + 1, name)),
      ...tracks.flatMap(({ events }, i) => events(i + 1)),
      ...memoryPoints(spans).map(([ts, bytes]): TraceEvent => ({
        name: 'Allocated',
        ph: 'C',
        ts,
        pid,
        args: { bytes },
      })),
    ],
  };
}

interface Track {
  readonly name: string;
  readonly events: (tid: number) => TraceEvent[];
}

/** One track for each lane. */
function tracksOf<Item>(
  name: string,
  items: readonly Item[],
  lanes: readonly number[],
  eventOf: (item: Item, tid: number) => TraceEvent,
): Track[] {
  const count = Math.max(0, ...new Set(lanes)) + 1;
  return Array.from({ length: count }, (_, lane) => ({
    name: lane === 0 ? name : `${name} (${lane + 1})`,
    events: (tid) => items.filter((_, i) => lanes[i] === lane).map((item) => eventOf(item, tid)),
  }));
}

function asSlice({ startUs, durationUs }: KernelSpan, index: number): Slice {
  return { startUs, endUs: startUs + durationUs, index, outer: null };
}

function rangeEvent({ name, startUs, endUs }: RangeSlice, pid: number, tid: number): TraceEvent {
  return { name, cat: 'range', ph: 'X', ts: startUs, dur: endUs - startUs, pid, tid, args: {} };
}

function kernelEvent(
  { name, kind, startUs, durationUs, op, ranges, work }: KernelSpan,
  pid: number,
  tid: number,
): TraceEvent {
  return {
    name,
    cat: kind,
    ph: 'X',
    ts: startUs,
    dur: durationUs,
    pid,
    tid,
    args: {
      ...(op ? { op: op.name, dtype: op.dtype } : {}),
      ...(ranges.length > 0 ? { range: ranges.map(({ name }) => name).join(' › ') } : {}),
      ...(work ? { flops: work.flops, bytes: work.bytes } : {}),
    },
  };
}

function named(name: string, pid: number, tid: number, value: string): TraceEvent {
  return { name, ph: 'M', pid, tid, args: { name: value } };
}
