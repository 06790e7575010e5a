import { describe, expect, it } from 'vitest';
import { kernelSpans } from '../../../src/benchmarks/profile/kernel-spans.ts';
import {
  attentionShares,
  matmulShares,
  topKernel,
  topsOfPhases,
} from '../../../src/benchmarks/profile/report/shares.ts';
import { stepTimes } from '../../../src/benchmarks/profile/report/step-times.ts';
import type { ProfileResult } from '../../../src/benchmarks/profile/result.ts';
import { kernelSummary, rangeSummary } from '../../../src/benchmarks/profile/report/summaries.ts';
import { toyProfileResult } from '../../fixtures/profiles.ts';

const spans = kernelSpans(toyProfileResult.steps);
const ceilings = { matmulFlopsPerSecond: { float32: 1e12 }, copyBytesPerSecond: 1e11 };
const process = { pid: 42, tid: 43 };

describe('kernel summary', () => {
  const rows = kernelSummary(spans, ceilings);

  it('has the statistics of Nsight Systems, in nanoseconds, longest total first', () => {
    expect(rows.map(({ name }) => name)).toEqual(['gemm', 'softmax_rows', 'split', '[CUDA memcpy DtoH]']);
    expect(rows[0]).toMatchObject({
      timeShare: 60 / 78,
      totalNs: 60_000,
      instances: 4,
      averageNs: 15_000,
      medianNs: 15_000,
      minNs: 10_000,
      maxNs: 20_000,
    });
    expect(rows[0]!['stdNs']).toBeCloseTo(5773.5, 1);
  });

  it('says what kernels reach, where the work is known', () => {
    // 48 MFLOP in 60 µs against 1 TFLOP/s.
    expect(rows[0]!['teraflopsPerSecond']).toBeCloseTo(0.8, 10);
    expect(rows[0]!['roofShare']).toBeCloseTo(0.8, 10);
    // 480 kB in 6 µs against 100 GB/s.
    expect(rows[1]!['gigabytesPerSecond']).toBeCloseTo(80, 10);
    expect(rows[1]!['roofShare']).toBeCloseTo(0.8, 10);
    expect(rows[1]).not.toHaveProperty('teraflopsPerSecond');
    expect(rows[2]).not.toHaveProperty('gigabytesPerSecond');
  });

  it('leaves the roof open where the ceiling of a dtype is not known', () => {
    const [gemm, softmax] = kernelSummary(spans, { ...ceilings, matmulFlopsPerSecond: {} });
    expect(gemm!['roofShare']).toBeNull();
    expect(softmax!['roofShare']).toBeCloseTo(0.8, 10);
  });
});

describe('range summary', () => {
  const rows = rangeSummary(spans, process);
  const row = (range: string, name: string) => rows.find((row) => row.range === range && row.name === name);

  it('counts a kernel in every range around it', () => {
    expect(row('forward', 'gemm')).toMatchObject({
      pid: 42,
      tid: 43,
      rangeInstances: 2,
      instances: 2,
    });
    expect(row('attention.scores', 'gemm')).toMatchObject({
      rangeInstances: 4,
      instances: 4,
      totalNs: 60_000,
    });
    expect(row('backward', 'softmax_rows')).toBeUndefined();
  });

  it('adds up: phases hold every kernel that an op queued', () => {
    const instances = (range: string) =>
      rows.filter((row) => row.range === range).reduce((sum, row) => sum + row.instances, 0);
    expect(instances('forward') + instances('backward')).toBe(spans.filter(({ op }) => op).length);
  });

  it('counts a range inside another of its name once', () => {
    const nested = spans.map((span) => ({ ...span, ranges: [...span.ranges, ...span.ranges] }));
    expect(rangeSummary(nested, process)).toEqual(rows);
  });
});

describe('shares', () => {
  it('sets matrix products, with their helpers, against the rest', () => {
    const rows = matmulShares(spans, 2);
    expect(rows.map(({ phase }) => phase)).toEqual(['forward', 'backward', 'other', 'all']);
    expect(rows[0]).toMatchObject({ kernels: 3, kernelMs: 0.018, matmulMs: 0.012, restMs: 0.006 });
    expect(rows[3]!['matmulShare']).toBeCloseTo(32 / 39, 10);
  });

  it('has the phases in the order of a step, whichever of its kernels ran first', () => {
    const optimizer = { ...spans[0]!, ranges: [{ name: 'optimizer', step: 0, index: 99 }] };
    const phases = matmulShares([optimizer, ...spans.toReversed()], 2).map(({ phase }) => phase);
    expect(phases).toEqual(['forward', 'backward', 'optimizer', 'other', 'all']);
  });

  it('sets softmax against products inside attention, where both ran', () => {
    const rows = attentionShares(spans, 2);
    expect(rows).toHaveLength(1);
    expect(rows[0]).toMatchObject({ phase: 'forward', softmaxMs: 0.006, matmulMs: 0.012, timeRatio: 0.5 });
    expect(rows[0]!['flopsRatio']).toBeCloseTo(5000 / 8_000_000, 10);
  });

  it('counts the FLOPs of an op once, whichever of its kernels are long', () => {
    const result = structuredClone(toyProfileResult);
    for (const { kernels } of result.steps) kernels.name.splice(0, 2, kernels.name[3]!, kernels.name[2]!);
    for (const { kernels } of result.steps) kernels.durationUs.splice(0, 2, 6, 6);
    const [row] = attentionShares(kernelSpans(result.steps), 2);
    expect(row!['matmulGigaflops']).toBeCloseTo(0.008, 10);
  });

  it('says how long the device idles and what profiling costs', () => {
    const rowOf = (result: ProfileResult) => stepTimes({ spans, result, isOpByOp: false });
    const row = rowOf({ ...toyProfileResult, plainMs: [0.05, 0.06, 0.05] });
    expect(row).toMatchObject({ kernels: 5, kernelMs: 0.039, wallMs: 0.1, droppedRecords: 0 });
    // Of what a step takes that is not profiled.
    expect(row['idleShare']).toBeCloseTo(0.22, 10);
    expect(rowOf(toyProfileResult)['overhead']).toBeCloseTo(0.05, 10);
  });

  it('finds the top kernel of phases', () => {
    expect(topKernel(spans, ['forward'], 2)).toEqual({ name: 'gemm', share: 10 / 18, instances: 1 });
    expect(topKernel(spans, ['forward', 'backward'], 2)).toMatchObject({ name: 'gemm', instances: 2 });
    expect(topKernel(spans, ['optimizer'], 2)).toBeNull();
  });

  it('names the top kernel of the phases that there are, among all of their kernels', () => {
    // There is no optimizer, and so no whole step.
    expect(topsOfPhases(spans, 2)).toEqual([
      { phase: 'forward', name: 'gemm', share: 10 / 18, instances: 1, kernels: 3 },
      expect.objectContaining({ phase: 'forward and backward', name: 'gemm', instances: 2, kernels: 4 }),
    ]);
  });
});
