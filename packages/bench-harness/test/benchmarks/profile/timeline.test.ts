import { describe, expect, it } from 'vitest';
import { chromeTrace } from '../../../src/benchmarks/profile/trace/chrome-trace.ts';
import { kernelSpans } from '../../../src/benchmarks/profile/kernel-spans.ts';
import { rangeSlices, stepTimeline } from '../../../src/benchmarks/profile/report/timeline.ts';
import { toyProfileResult } from '../../fixtures/profiles.ts';

const spans = kernelSpans(toyProfileResult.steps.slice(0, 1));

describe('timeline', () => {
  it('lets a range reach from its first kernel to its last', () => {
    expect(rangeSlices(spans)).toEqual([
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
