import { renderMarkdown, type Plot } from '@roofline/reports';
import { describe, expect, it } from 'vitest';
import { warmupBenchmark } from '../../../src/benchmarks/warmup/benchmark.ts';
import { outOfMemoryRecord, toyCell, toyRecord, toyResult } from '../../fixtures/records.ts';

const ofWarmup = (warmup: number, deviceMs: number[]) =>
  toyRecord(
    {},
    { benchmark: 'warmup', parameters: { ...toyCell, warmup }, result: { ...toyResult(), deviceMs } },
  );
const records = [
  ofWarmup(5, [10, 10, 10, 10]),
  ofWarmup(0, [100, 12, 10, 10]),
  ofWarmup(2, [10.2, 10, 10, 10]),
];

describe('the warm-up study', () => {
  it('contrasts each number of steps with the most', () => {
    const { rows } = warmupBenchmark.toTable(records);
    expect(rows.map(({ warmup, firstMs, meanRatio }) => [warmup, firstMs, meanRatio])).toEqual([
      [0, 100, expect.closeTo(3.3)],
      [2, 10.2, expect.closeTo(1.005)],
      [5, 10, 1],
    ]);
  });

  it('says how much warm-up matters, and from when on it does not', () => {
    const { title, chart, summary } = warmupBenchmark.toReport(records);
    expect(title).toBe('After 0 warm-up steps a mean step takes 3.30× of its time after 5 warm-up steps');
    expect(chart).toMatchObject({
      ...{ ours: 'Mean', theirs: '5 warm-up steps', heads: ['Warm-up'] },
      rows: [
        { names: ['0'], ours: 33, theirs: 10 },
        { names: ['2'], ours: expect.closeTo(10.05), theirs: 10 },
      ],
    });
    expect(summary).toEqual([
      'The first step that counts takes **10.0×** of the median (100 ms).',
      'After 0 warm-up steps the mean step of small takes **3.30×** the time that it takes after 5 warm-up steps; from 2 ' +
        'warm-up steps on it is within 5 %.',
    ]);
    const alone = warmupBenchmark.toReport(records.slice(0, 1));
    expect(alone).toMatchObject({ title: 'Warm-up', summary: [] });
    expect(alone.chart).toBeUndefined();
  });

  it('says from when on all are within 5 %, not which is the first that is', () => {
    const [, sentence] = warmupBenchmark.toReport([
      ofWarmup(0, [10, 10]),
      ofWarmup(1, [15, 15]),
      ofWarmup(2, [10.1, 10.1]),
      ofWarmup(5, [10, 10]),
    ]).summary;
    expect(sentence).toContain('from 2 warm-up steps on it is within 5 %');
  });

  it('counts steps that are faster than after the most warm-up as not settled either, and settling at the end as none', () => {
    const settling = (...means: [warmup: number, ms: number][]) =>
      warmupBenchmark.toReport(means.map(([warmup, ms]) => ofWarmup(warmup, [ms, ms]))).summary[1];
    expect(settling([0, 20], [1, 9], [2, 10.4], [5, 10])).toContain('; from 2 warm-up steps on');
    expect(settling([0, 10.2], [2, 10.1], [5, 10])).toContain('; from 0 warm-up steps on');
    expect(settling([0, 20], [2, 15], [5, 10])).toMatch(/after 5 warm-up steps\.$/);
  });

  it('has a column of the execution where that is swept', () => {
    const compiled = records.map((each) => ({
      ...each,
      parameters: { ...each.parameters, execution: 'compiled' },
    }));
    const { columns, rows } = warmupBenchmark.toTable([...records, ...compiled]);
    expect(columns.map(({ key }) => key)).toContain('execution');
    expect(rows.map(({ execution }) => execution)).toEqual([
      ...['eager', 'eager', 'eager'],
      ...['compiled', 'compiled', 'compiled'],
    ]);
    expect(warmupBenchmark.toTable(compiled).caption).toContain('compiled');
  });

  it('draws very many steps', () => {
    const times = Array.from({ length: 300_000 }, (_, step) => 10 + (step % 2));
    expect(warmupBenchmark.toReport([ofWarmup(0, times)]).sections[0]!.blocks).toHaveLength(2);
  });

  it('draws each step at its place since the process began', () => {
    const [, plot] = warmupBenchmark.toReport(records).sections[0]!.blocks as [unknown, Plot];
    expect(plot.y.scale).toBe('log');
    expect(plot.series.map(({ name, points }) => [name, points[0]])).toEqual([
      ['0 warm-up steps', { x: 1, y: 100 }],
      ['2 warm-up steps', { x: 3, y: 10.2 }],
      ['5 warm-up steps', { x: 6, y: 10 }],
    ]);
  });

  it('keeps rows of cells that failed', () => {
    const failed = { ...outOfMemoryRecord(), benchmark: 'warmup', parameters: { ...toyCell, warmup: 9 } };
    const report = warmupBenchmark.toReport([...records, failed]);
    expect(renderMarkdown(report)).toContain('OOM');
    expect(report.summary.at(-1)).toContain('1 of 4 cells could not be measured');
  });
});
