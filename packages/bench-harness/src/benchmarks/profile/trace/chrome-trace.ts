import type { KernelSpan } from '../kernel-spans.ts';
import { memoryPoints, rangeSlices } from '../report/timeline.ts';

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

const rangesTid = 1;
const firstStreamTid = 2;

/**
 * One step of a process in the format of chrome://tracing, which Perfetto reads: ranges in a track above, one track for
 * each stream, memory as a counter. Slices of a track lie apart or inside each other, as Perfetto wants them.
 */
export function chromeTrace(
  spans: readonly KernelSpan[],
  pid: number,
  processName = 'roofline',
): ChromeTrace {
  const streams = [...new Set(spans.map(({ stream }) => stream))].sort();
  const tidOf = (stream: string) => firstStreamTid + streams.indexOf(stream);
  return {
    displayTimeUnit: 'ns',
    traceEvents: [
      named('process_name', pid, 0, processName),
      named('thread_name', pid, rangesTid, 'Ranges'),
      ...streams.map((stream) => named('thread_name', pid, tidOf(stream), stream)),
      ...rangeSlices(spans).map(({ name, startUs, endUs }): TraceEvent => ({
        name,
        cat: 'range',
        ph: 'X',
        ts: startUs,
        dur: endUs - startUs,
        pid,
        tid: rangesTid,
        args: {},
      })),
      ...spans.map((span) => kernelEvent(span, pid, tidOf(span.stream))),
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
