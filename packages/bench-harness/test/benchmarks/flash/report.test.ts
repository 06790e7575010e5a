import { renderHtml, renderMarkdown, renderSvg, type Plot, type RatioPlot } from '@roofline/reports';
import { describe, expect, it } from 'vitest';
import { flashBenchmark } from '../../../src/benchmarks/flash/benchmark.ts';
import { compareRecords } from '../../../src/report/compare.ts';
import { allTimed, flashRecord, timedOutcome, withoutMemory } from '../../fixtures/attention-records.ts';

const records = [
  flashRecord(),
  flashRecord({ sequence: 128 }),
  withoutMemory(flashRecord({ sequence: 256 })),
];
const report = flashBenchmark.toReport(records);
const plots = report.sections
  .flatMap((section) => section.blocks)
  .filter((block): block is Plot => block.kind === 'plot');
const rows = flashBenchmark.toTable(records).rows;

describe('the flash benchmark', () => {
  it('has a row for every attention and pass, and one a pass for a cell without a result', () => {
    expect(rows).toHaveLength(2 * (5 * 2) + 2);
    expect(
      rows.slice(0, 5).map(({ implementation, pass, status }) => [implementation, pass, status]),
    ).toEqual([
      ['flash', 'forward', 'ok'],
      ['plain', 'forward', 'ok'],
      ['PyTorch plain', 'forward', 'ok'],
      ['PyTorch FlashAttention', 'forward', 'out-of-memory'],
      ['PyTorch cuDNN', 'forward', 'not-available'],
    ]);
    expect(rows.at(-1)).toMatchObject({ pass: 'both', status: 'out-of-memory', sequence: 256 });
    expect(rows[4]!.error).toBe('No cuDNN here.');
  });

  it('reports quantiles, TFLOP/s, the share of the roof, and ratios', () => {
    const [flash, plain, torch] = rows;
    const flops = (4 * 2 * 64 ** 2 * 16) / 2;
    expect(flash).toMatchObject({ medianMs: 1, lowMs: 0.9, highMs: 1.1, overPlain: 4, samples: 6 });
    expect(flash!['teraflopsPerSecond']).toBeCloseTo(flops / 1e9, 12);
    expect(flash!['roofShare']).toBeCloseTo((4 * 2 * 64 * 16 * 4) / 1e11 / 1e-3, 12);
    expect(flash!['ratio']).toBeUndefined();
    expect(plain).toMatchObject({ medianMs: 4, overPlain: 1 });
    expect(torch).toMatchObject({ medianMs: 3, overPlain: 1 });
    expect(torch!['ratio']).toBeCloseTo(1 / 3, 12);
    const both = rows.find(({ pass, sequence }) => pass === 'both' && sequence === 64)!;
    expect(both['teraflopsPerSecond']).toBeCloseTo((3.5 * flops) / 3.5 / 1e9, 12);
  });

  it('sets all attentions under the roof, each by the work of its formula', () => {
    const blocks = report.sections.flatMap((section) => section.blocks);
    const [roofline] = blocks.filter((block) => block.kind === 'roofline');
    expect(roofline!.ceilings).toEqual([{ label: 'float32 products', flopsPerSecond: 1e12 }]);
    expect(new Set(roofline!.points.map(({ category }) => category))).toEqual(
      new Set(['flash', 'plain', 'PyTorch plain']),
    );
    const flash = roofline!.points.find(
      ({ name, category }) => name === 'sequence 64' && category === 'flash',
    );
    const tensor = 2 * 64 * 16 * 4;
    expect(flash).toMatchObject({ flops: 3.5 * 2 * 2 * 64 ** 2 * 16, bytes: 12 * tensor, durationMs: 3.5 });
  });

  it('begins with ours against the fastest of PyTorch, shape by shape', () => {
    expect(report.title).toMatch(
      /^Flash attention, forward and backward, takes .* of the time of PyTorch's fastest$/,
    );
    expect(report.chart).toMatchObject({ kind: 'ratios', theirs: 'PyTorch plain', heads: ['Sequence'] });
    expect((report.chart as RatioPlot).rows.map(({ names }) => names)).toEqual([['64'], ['128']]);
  });

  it('has a section for each pass, with time on logarithmic axes and bars of TFLOP/s', () => {
    expect(report.sections.map(({ id }) => id)).toEqual([
      ...['forward', 'both', 'roof'],
      ...['memory', 'not-measured'],
    ]);
    const shape = 'float32-b1-h2-d16';
    expect(plots.map(({ id }) => id)).toEqual([
      `forward-time-${shape}`,
      `forward-throughput-${shape}`,
      `both-time-${shape}`,
      `both-throughput-${shape}`,
      `peak-memory-${shape}`,
    ]);
    const [time, throughput] = plots as [Plot, Plot];
    expect([time.x.scale, time.y.scale, time.marks]).toEqual(['log', 'log', 'line']);
    expect([throughput.marks, throughput.references]).toEqual(['bar', [{ label: 'matrix products', y: 1 }]]);
    expect(time.series.map(({ name }) => name)).toEqual(['flash', 'plain', 'PyTorch plain']);
    for (const plot of plots) expect(renderSvg(plot)).toContain('<svg');
    expect(renderMarkdown(report)).toContain('not available');
    expect(renderHtml(report)).toContain('Forward and backward together');
  });

  it('draws attention with and without a mask apart: it is twice the work', () => {
    const { sections } = flashBenchmark.toReport([flashRecord(), flashRecord({ mask: 'full' })]);
    const drawn = sections.flatMap(({ blocks }) => blocks).filter((block) => block.kind === 'plot');
    expect(drawn.slice(0, 2).map(({ id }) => id)).toEqual([
      'forward-time-float32-b1-h2-d16',
      'forward-time-float32-b1-h2-d16-full',
    ]);
    expect(drawn[1]!.title).toBe('Time against sequence: d 16, batch 1, 2 heads, full, float32');
    for (const { series } of drawn) for (const { points } of series) expect(points).toHaveLength(1);
  });

  it('sums up what flash reaches, over plain and against PyTorch, and what is missing', () => {
    const text = report.summary.join('\n');
    expect(text).toContain('1 of 3 cells could not be measured: ');
    expect(text).toContain('Flash over plain attention, forward: **4.00×** (4.00× to 4.00×) as fast.');
    expect(text).toContain(
      'Flash attention, forward, takes **0.33×** (0.33× to 0.33×) the time of PyTorch plain.',
    );
    expect(text).toContain('PyTorch cuDNN, not available: d 16');
    expect(text).toContain('(No cuDNN here.)');
    expect(text).toContain('d 16 · sequence 256 · batch 1 · 2 heads · float32 (out of memory)');
  });

  it('is compared by our flash attention, by its last pass', async () => {
    const slower = allTimed.map((each) =>
      each.side === 'ours' && each.attention === 'flash' ? { ...each, outcome: timedOutcome(2) } : each,
    );
    const [comparison] = await compareRecords([flashRecord()], [flashRecord({}, slower)]);
    expect(comparison).toMatchObject({ times: { beforeMs: 3.5, afterMs: 7 }, memoryRatio: 1 });
  });
});
