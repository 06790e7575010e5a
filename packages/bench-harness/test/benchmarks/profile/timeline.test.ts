import { describe, expect, it } from 'vitest';
import { chromeTrace } from '../../../src/benchmarks/profile/trace/chrome-trace.ts';
import { packProfile } from '../../../src/benchmarks/profile/packed-profile.ts';
import { kernelSpans } from '../../../src/benchmarks/profile/kernel-spans.ts';
import { rangeSlices, stepTimeline } from '../../../src/benchmarks/profile/report/timeline.ts';
import { toyProfileResult } from '../../fixtures/profiles.ts';

const spans = kernelSpans(toyProfileResult.steps.slice(0, 1));

describe('timeline', () => {
  it('lets a range reach from its first kernel to its last', () => {
    expect(rangeSlices(spans)).toMatchObject([
      { name: 'forward', depth: 0, startUs: 10, endUs: 30 },
      { name: 'attention.scores', depth: 1, startUs: 10, endUs: 22 },
      { name: 'attention.softmax', depth: 1, startUs: 24, endUs: 30 },
      { name: 'backward', depth: 0, startUs: 40, endUs: 60 },
      { name: 'attention.scores', depth: 1, startUs: 40, endUs: 60 },
    ]);
  });

  it('draws a range inside another of its name as one', () => {
    const nested = spans.map((span) => ({
      ...span,
      ranges: span.ranges.flatMap((range) => [range, { ...range, index: range.index + 10 }]),
    }));
    expect(rangeSlices(nested)).toEqual(rangeSlices(spans));
  });

  it('has ranges above, a track for each stream, and memory', () => {
    const { tracks, counters } = stepTimeline(spans, 'timeline', 'One step');
    expect(tracks.map(({ name, slices }) => [name, slices.length])).toEqual([
      ['Ranges', 5],
      ['cuda:0 stream 7', 5],
    ]);
    expect(counters![0]!.points).toEqual([
      [10, 2000],
      [24, 3000],
      [40, 5000],
    ]);
  });
});

/** Slices of one track that reach out of another there, to the nanosecond. */
function crossings({ traceEvents }: ReturnType<typeof chromeTrace>): string[] {
  const ns = (us: number) => Math.round(us * 1000);
  const slices = traceEvents
    .filter(({ ph }) => ph === 'X')
    .map(({ name, tid, ts, dur }) => ({ name, tid, start: ns(ts!), end: ns(ts! + dur!) }));
  return slices.flatMap((a) =>
    slices
      .filter((b) => a.tid === b.tid && a.start < b.start && b.start < a.end && a.end < b.end)
      .map((b) => `${a.name}, ${b.name}`),
  );
}

describe('tracks of a Chrome trace', () => {
  it('hold no slices that cross, where kernels of a stream overlap and ranges of several streams do', () => {
    const late = spans.map((span, i) =>
      i === 1 ? { ...span, stream: 'cuda:0 stream 9', durationUs: 35 } : span,
    );
    const overlapping = late.map((span, i) => (i === 2 ? { ...span, durationUs: 17 } : span));
    for (const each of [late, overlapping]) expect(crossings(chromeTrace(each, 1))).toEqual([]);
    const { traceEvents } = chromeTrace(overlapping, 1);
    expect(traceEvents.filter(({ ph, cat }) => ph === 'X' && cat !== 'range')).toHaveLength(spans.length);
    const tracks = traceEvents.filter(({ name }) => name === 'thread_name').map(({ args }) => args['name']);
    expect(tracks).toContain('Ranges (2)');
    const backward = traceEvents.find(({ cat, name }) => cat === 'range' && name === 'backward')!;
    const inside = traceEvents.findLast(({ cat, name }) => cat === 'range' && name === 'attention.scores')!;
    expect(inside.tid).toBe(backward.tid);
  });

  it('hold kernels apart that follow each other, whatever fractions of a nanosecond they take', () => {
    const kernel = (startUs: number, durationUs: number) => ({
      ...{
        name: 'Exp',
        kind: 'kernel' as const,
        stream: 'cpu',
        op: null,
        byteLength: null,
        grid: null,
        block: null,
      },
      ...{ startUs, durationUs },
    });
    const kernels = [kernel(0.0006, 1.0006), kernel(1.0012, 2)];
    const packed = packProfile({ kernels, ops: [], ranges: [], wallUs: 4, droppedRecords: 0 });
    const [first, second] = kernelSpans([packed]);
    expect(first!.startUs + first!.durationUs).toBeCloseTo(second!.startUs, 9);
  });
});

describe('Chrome trace', () => {
  const { traceEvents } = chromeTrace(spans, 42);

  it('names its tracks: ranges above, one for each stream', () => {
    const tracks = traceEvents.filter(({ name }) => name === 'thread_name');
    expect(tracks.map(({ tid, args }) => [tid, args['name']])).toEqual([
      [1, 'Ranges'],
      [2, 'cuda:0 stream 7'],
    ]);
  });

  it('holds every kernel with its op and ranges', () => {
    const kernels = traceEvents.filter(({ ph, tid }) => ph === 'X' && tid === 2);
    expect(kernels).toHaveLength(5);
    expect(kernels[1]).toEqual({
      name: 'gemm',
      cat: 'kernel',
      ph: 'X',
      ts: 12,
      dur: 10,
      pid: 42,
      tid: 2,
      args: {
        op: 'matmul',
        dtype: 'float32',
        range: 'forward › attention.scores',
        flops: 8_000_000,
        bytes: 4000,
      },
    });
  });

  it('keeps the slices of a track apart or inside each other', () => {
    for (const tid of [1, 2]) {
      const slices = traceEvents.filter((event) => event.ph === 'X' && event.tid === tid);
      for (const a of slices) {
        for (const b of slices) {
          const [endA, endB] = [a.ts! + a.dur!, b.ts! + b.dur!];
          const crosses = a.ts! < b.ts! && b.ts! < endA && endA < endB;
          expect(crosses).toBe(false);
        }
      }
    }
  });
});
