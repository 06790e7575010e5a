import { renderHtml, renderMarkdown, type Plot } from '@roofline/reports';
import { describe, expect, it } from 'vitest';
import { profileBenchmark } from '../../../src/benchmarks/profile/benchmark.ts';
import { reportOfRecords } from '../../../src/report/report-of-records.ts';
import { profileRecord, toyPeer, toyProfileResult } from '../../fixtures/profiles.ts';
import { outOfMemoryRecord, toyCell, toyRecord } from '../../fixtures/records.ts';

describe('profile report', () => {
  const report = profileBenchmark.toReport([profileRecord()]);

  it('says which kernel leads, how long the device idles and what softmax costs', () => {
    expect(report.title).toBe('Kernels fill 39.0 % of a step');
    expect(report.summary).toEqual([
      'Kernels run for 39.0 µs of a step of 100 µs; the device idles **61.0 %** of it.',
      'Matrix products make up **82.1 %** of the kernel time.',
      'Inside attention, forward, softmax takes **50.0 %** of the time of the matrix products, with **0.06 %** of ' +
        'their FLOPs.',
      'The top kernel of forward, by its share of the kernel time: `gemm` with **55.6 %**.',
      'The top kernel of forward and backward, by its share of the kernel time: `gemm` with **78.9 %**.',
      'Profiled: small (context 16, batch 2, train-step, float32).',
    ]);
  });

  it('sums up several cells in the order of their work, whatever order they ran in', async () => {
    const profile = profileRecord();
    const large = { ...toyCell, size: 'large', shape: { ...toyCell.shape, layers: 9 } };
    const result = structuredClone(toyProfileResult);
    for (const { kernels } of result.steps) kernels.durationUs[3]! /= 2;
    const { summary } = await reportOfRecords([
      { ...profile, parameters: large, result: result as never },
      profile,
    ]);
    expect(summary.slice(-3)).toEqual([
      'The top kernel of forward, by its share of the kernel time: `gemm` with **55.6 %** for small to large.',
      'The top kernel of forward and backward, by its share of the kernel time: `gemm` with **78.9 %** for small to ' +
        '**71.4 %** for large.',
      'Profiled: small; large (context 16, batch 2, train-step, float32).',
    ]);
    expect(summary[0]).toBe(
      'Of the time of a step that is not profiled the device idles **61.0 %** for small to **71.0 %** for large.',
    );
  });

  it('says where nothing was selected, and what there is', async () => {
    const { summary } = await reportOfRecords([profileRecord({ phase: 'optimizer', range: 'norms' })]);
    expect(summary[0]).toBe(
      'No kernel of small lies in phase `optimizer`, ranges `norms`. It has the phases forward, backward, other and ' +
        'the ranges forward, attention.scores, attention.softmax, backward.',
    );
  });

  it('sets the kernels of the cell with the most work under the roof, below the findings', () => {
    const { chart } = report;
    if (chart?.kind !== 'roofline') throw new Error('the chart is no roofline');
    const gemm = chart.points.filter(({ name }) => name === 'gemm');
    expect(gemm.map(({ category, ceiling }) => [category, ceiling])).toEqual([
      ['forward', 'float32 products'],
      ['backward', 'float32 products'],
    ]);
    // Of one step: 8 MFLOP forward in 10 µs, 16 backward in 20.
    expect(gemm.map(({ flops, bytes, durationMs }) => [flops, bytes, durationMs])).toEqual([
      [8e6, 4000, 0.01],
      [16e6, 8000, 0.02],
    ]);
    expect(chart.points.map(({ name }) => name)).not.toContain('[CUDA memcpy DtoH]');
    expect(chart.caption).toContain('92.3 % of the kernel time');
    const unknown = profileBenchmark.toReport([profileRecord({}, { ceilings: null })]);
    expect(unknown.chart).toBeUndefined();
  });

  it("stacks the kernel time by phase and kind, ours next to PyTorch's", () => {
    const peer = { ...profileRecord(), result: { ...toyProfileResult, peer: toyPeer } as never };
    const blocks = profileBenchmark.toReport([peer]).sections.flatMap((section) => section.blocks);
    const plot = blocks.find((block) => block.kind === 'plot' && block.stacked) as Plot;
    const heights = Object.fromEntries(
      plot.series.map(({ name, points }) => [name, points.map(({ x, y }) => [x, y])]),
    );
    expect(heights['matrix products']!.slice(0, 4)).toEqual([
      ['forward', 0.012],
      ['forward, PyTorch', 0.02],
      ['backward', 0.02],
      ['backward, PyTorch', 0.04],
    ]);
    expect(heights['softmax and loss']![0]).toEqual(['forward', 0.006]);
    expect(heights['element-wise and other']![1]).toEqual(['forward, PyTorch', 0.016]);
  });

  it('has a timeline and renders', () => {
    const blocks = report.sections.flatMap(({ blocks }) => blocks);
    expect(blocks.some(({ kind }) => kind === 'timeline')).toBe(true);
    expect(renderMarkdown(report)).toContain('NVTX Range');
    expect(renderHtml(report)).toContain('attention.softmax');
  });

  it('stands next to other benchmarks in one report', async () => {
    const mixed = await reportOfRecords([profileRecord(), toyRecord()]);
    const ids = mixed.sections.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('stays under 5 MB for a profile of 10,000 kernels', async () => {
    const record = profileRecord();
    const result = structuredClone(record.result!) as { steps: { kernels: Record<string, number[]> }[] };
    for (const { kernels } of result.steps) {
      for (const list of Object.values(kernels)) {
        const once = [...list];
        for (let i = 1; i < 2000; i++) list.push(...once);
      }
      kernels['startUs'] = kernels['startUs']!.map((_, i) => i * 21.123);
    }
    const html = renderHtml(await reportOfRecords([{ ...record, result: result as never }]));
    expect(html.length).toBeLessThan(5e6);
  });

  it('names selections in titles, and cells that failed in rows', () => {
    const table = profileBenchmark.toTable(
      [profileRecord({ phase: 'forward', range: 'attention.*' }), outOfMemoryRecord()].map((record) => ({
        ...record,
        settings: profileRecord({ phase: 'forward', range: 'attention.*' }).settings,
      })),
    );
    expect(table.title).toBe('Kernel summary: forward, ranges attention.*');
    expect(table.rows.map(({ name, status }) => name ?? status)).toEqual([
      'gemm',
      'softmax_rows',
      'split',
      'out-of-memory',
    ]);
  });
});
