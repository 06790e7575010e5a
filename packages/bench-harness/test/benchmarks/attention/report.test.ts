import { renderHtml, renderMarkdown, renderSvg, type Plot, type Table } from '@roofline/reports';
import { describe, expect, it } from 'vitest';
import { attentionBenchmark } from '../../../src/benchmarks/attention/benchmark.ts';
import { attentionDefaults } from '../../../src/benchmarks/attention/parameters.ts';
import { compareRecords } from '../../../src/report/compare.ts';
import { attentionRecord, withoutMemory } from '../../fixtures/attention-records.ts';

const records = [
  attentionRecord(),
  attentionRecord({ attention: 'flash' }, 0.5),
  attentionRecord({ sequence: 128 }, 4),
  attentionRecord({ attention: 'flash', sequence: 128 }, 1),
  withoutMemory(attentionRecord({ sequence: 256 })),
  attentionRecord({ attention: 'flash', sequence: 256 }, 2),
];
const report = attentionBenchmark.toReport(records);
const blocks = report.sections.flatMap((section) => section.blocks);
const tables = blocks.filter((block): block is Table => block.kind === 'table');
const plots = blocks.filter((block): block is Plot => block.kind === 'plot');

describe('the attention benchmark', () => {
  it('expands to the whole sweep where nothing is named', () => {
    const { cuda } = attentionDefaults;
    const { expand, parameters } = attentionBenchmark;
    const asked = { ...cuda, attention: ['plain', 'flash'], dtype: ['float32'], seed: 0 };
    const cells = expand(parameters.parse(asked));
    expect(cells).toHaveLength(2 * 4 * 5);
    expect(cells[0]).toEqual({
      ...{ attention: 'plain', execution: 'eager' },
      ...{ batch: 8, headDimension: 16, sequence: 256, dtype: 'float32' },
    });
    expect(cells.at(-1)).toMatchObject({ attention: 'flash', headDimension: 128, sequence: 16384 });
  });

  it('reports times, their share of the roof, and memory of every cell', () => {
    const [row] = attentionBenchmark.toTable(records).rows;
    // 2 · 2 · 64² · 16 FLOPs in 1 ms; the bytes, 4 · 2 · 64 · 16 · 4 over 1e11 a second, bound it.
    expect(row).toMatchObject({
      attention: 'plain',
      sequence: 64,
      status: 'ok',
      forwardMedianMs: 1,
      backwardMedianMs: 2,
    });
    expect(row!['forwardTeraflopsPerSecond']).toBeCloseTo((4 * 2 * 64 ** 2 * 16) / 2 / 1e9, 12);
    expect(row!['forwardRoofShare']).toBeCloseTo((4 * 2 * 64 * 16 * 4) / 1e11 / 1e-3, 12);
    expect(row).toMatchObject({ beforeBackwardBytes: 2 ** 17, peakBytes: 2 ** 19 });
  });

  it('gives what a cell without memory would have needed', () => {
    const need = tables.find(({ id }) => id === 'memory-need')!;
    const lost = need.rows.find(({ status }) => status === 'out-of-memory')!;
    const tensor = 2 * 256 * 16 * 4;
    expect(lost).toMatchObject({ neededBytes: 5 * tensor + 2 * 256 ** 2 * 4, keptBytes: 2 * 256 ** 2 * 4 });
    expect(lost['beforeBackwardBytes']).toBeUndefined();
    expect(renderMarkdown(need)).toContain('OOM');
  });

  it('draws time and memory against the sequence on logarithmic axes', () => {
    expect(plots.map(({ id }) => id)).toEqual(['time-float32-b2-d16', 'memory-float32-b2-d16']);
    for (const plot of plots) {
      expect([plot.x.scale, plot.y.scale]).toEqual(['log', 'log']);
      expect(renderSvg(plot)).toContain('<svg');
    }
    const [plain] = plots[0]!.series;
    expect(plain).toMatchObject({ name: 'plain, forward' });
    expect(plain!.points.map(({ x, y, note }) => [x, y, note])).toEqual([
      [64, 1, undefined],
      [128, 4, undefined],
      [256, null, 'out of memory'],
    ]);
  });

  it('compares compiled passes with eager ones, where both were measured', () => {
    const passesOf = (cell: Parameters<typeof attentionRecord>[0], scale: number) => {
      const { result, ...record } = attentionRecord({ ...cell, execution: 'compiled' }, scale);
      const times = { deviceMs: [2 * scale], wallMs: [2 * scale] };
      const memory = { beforeBackwardBytes: null, peakForwardBytes: 2 ** 17, peakAllocatedBytes: 2 ** 19 };
      const compilation = { forward: { calls: 2, durationMs: 10 }, both: { calls: 3, durationMs: 20 } };
      return { ...record, result: { ...result, backward: null, both: times, memory, compilation } };
    };
    const all = [...records, passesOf({}, 0.5), passesOf({ sequence: 128 }, 8), passesOf({ batch: 3 }, 1)];
    const compiled = attentionBenchmark.toReport(all);
    const blocksOf = compiled.sections.flatMap((section) => section.blocks);
    const table = blocksOf.find(
      (block) => block.kind === 'table' && block.id === 'compiled-beside-eager',
    ) as Table;
    const told = table.rows.map(({ sequence, pass, eagerMs, compiledMs, ratio, paysAfter, memoryRatio }) => [
      ...[sequence, pass, eagerMs, compiledMs, ratio, paysAfter, memoryRatio],
    ]);
    expect(told).toEqual([
      [64, 'forward', 1, 0.5, 0.5, 20, 0.5],
      [64, 'forward and backward', 3, 1, 1 / 3, 10, 1],
      [128, 'forward', 4, 8, 2, null, 0.5],
      [128, 'forward and backward', 12, 16, 16 / 12, null, 1],
    ]);
    const times = attentionBenchmark.toTable(all);
    expect(times.columns.map(({ key }) => key)).toContain('execution');
    expect(times.rows.at(-1)).toMatchObject({ execution: 'compiled', forwardMedianMs: 1, bothMedianMs: 2 });
    expect(times.rows.at(-1)!['backwardMedianMs']).toBeUndefined();
    expect(attentionBenchmark.toTable(records).columns.map(({ key }) => key)).not.toContain('execution');
    expect(compiled.summary).toContain(
      'Compiled, plain forward takes **0.50×** for sequence 64, d 16 to **2.00×** for sequence 128, d 16 the time of eager.',
    );
    const [plot] = blocksOf.filter((block): block is Plot => block.kind === 'plot');
    expect(plot!.series.map(({ name }) => name)).toContain('plain, compiled, forward');
    expect(plot!.series.map(({ name }) => name)).not.toContain('plain, compiled, backward');
    expect(renderHtml(compiled)).toContain('Compiled vs eager');
    expect(attentionBenchmark.samplesMs(passesOf({}, 1))).toEqual([2]);
  });

  it('sums up: flash over plain at the longest sequence of both, and what was not measured', () => {
    expect(report.summary).toEqual([
      expect.stringMatching(
        /^At sequence 128, d 16, float32, flash attention is \*\*4\.00×\*\* as fast as plain forward/,
      ),
      '1 of 6 cells could not be measured: plain · d 16 · sequence 256 · batch 2 · float32 (out of memory).',
    ]);
    expect(renderHtml(report)).toContain('Memory by formula and as measured');
  });

  it('compares flash with plain by eager passes, of which each was timed', () => {
    const compiled = (['plain', 'flash'] as const).map((attention) => {
      const { result, ...record } = attentionRecord({ attention, sequence: 512, execution: 'compiled' });
      const both = { deviceMs: [2], wallMs: [2] };
      return { ...record, result: { ...result, backward: null, both } };
    });
    expect(attentionBenchmark.toReport([...records, ...compiled]).summary[0]).toMatch(
      /^At sequence 128, d 16/,
    );
  });

  it('is compared by the time of both passes, and peak memory', async () => {
    const [comparison] = await compareRecords([attentionRecord()], [attentionRecord({}, 2)]);
    expect(comparison).toMatchObject({ times: { beforeMs: 3, afterMs: 6 }, memoryRatio: 1 });
  });
});
