import {
  type Plot,
  type RatioPlot,
  type Table,
  renderHtml,
  renderLatex,
  renderMarkdown,
} from '@roofline/reports';
import { describe, expect, it } from 'vitest';
import { allreduceBenchmark } from '../../../src/benchmarks/allreduce/benchmark.ts';
import { collectiveCell } from '../../../src/benchmarks/allreduce/parameters.ts';
import { tableIn } from '../../fixtures/blocks.ts';
import { collectiveRecord } from '../../fixtures/collective-records.ts';
import { withoutMemory } from '../../fixtures/attention-records.ts';

const failure = { status: 'failed', error: { name: 'PeerError', message: 'no such thing' } } as const;
const records = [
  collectiveRecord(),
  collectiveRecord({ bytes: 1e7 }),
  collectiveRecord({ ranks: 2 }),
  collectiveRecord({ op: 'reducescatter' }, { torch: failure }),
  withoutMemory(collectiveRecord({ bytes: 1e9 })),
];
const report = allreduceBenchmark.toReport(records);
const blocks = report.sections.flatMap((section) => section.blocks);
const plots = blocks.filter((block): block is Plot => block.kind === 'plot');

describe('the table of collectives', () => {
  const { columns, rows } = allreduceBenchmark.toTable(records);

  it('has no two headings alike, in place and out of place', () => {
    const labels = columns.map(({ label }) => label);
    expect(labels).toEqual(expect.arrayContaining(['busbw', 'busbw, in place']));
    expect(labels).toEqual([...new Set(labels)]);
  });

  it('has a row for each side, with bandwidths, the share of the roof and the ratio', () => {
    expect(rows[0]).toMatchObject({
      ...{ backend: 'gloo', size: '1 MB', ranks: 4, status: 'ok', meanUs: 1500 },
      ...{ 'in-place-us': 2000, 'in-place-algbw': 0.5, 'in-place-busbw': 0.75, 'in-place-wrong': 0 },
      ...{ 'out-of-place-us': 3000, roofShare: 0.25, overPeer: 2 },
    });
    expect(rows[1]).toMatchObject({ backend: 'PyTorch gloo', 'in-place-us': 4000, 'in-place-wrong': 'N/A' });
    expect(rows[1]!['out-of-place-us']).toBeUndefined();
  });

  it('says why a peer or a cell has nothing', () => {
    expect(rows[7]).toMatchObject({ backend: 'PyTorch gloo', status: 'failed', error: 'no such thing' });
    expect(rows[8]).toMatchObject({ size: '1 GB', status: 'out-of-memory' });
    expect(rows).toHaveLength(9);
  });
});

describe('the report of collectives', () => {
  it("has nccl-tests' table by its own names", () => {
    const table = blocks.find((block) => 'id' in block && block.id === 'nccl-tests');
    expect(table).toMatchObject({
      rows: expect.arrayContaining([
        expect.objectContaining({ bytes: 1e6, count: 250_000, ncclType: 'float', redop: 'sum', root: -1 }),
      ]),
    });
  });

  it('gives the bytes that are moved, as nccl-tests does, and counts one rank', () => {
    const record = collectiveRecord({ op: 'allgather', bytes: 1003, ranks: 1 });
    const table = tableIn(allreduceBenchmark.toReport([record]), 'nccl-tests')!;
    expect(table.rows[0]).toMatchObject({ bytes: 1000, count: 250 });
    expect(allreduceBenchmark.describe(collectiveCell.parse(record.parameters))).toBe(
      'allgather · gloo · 1 rank · 1003 B · float32',
    );
  });

  it('fits latency and bandwidth where there are sizes', () => {
    const table = blocks.find((block) => 'id' in block && block.id === 'latency-and-bandwidth');
    // 1 MB and 10 MB both take 2 ms: nothing follows, and of one size alone neither.
    expect(table).toBeUndefined();
    const growing = [1, 2, 4].map((factor) => {
      const timing = { maxMs: [1 + factor], meanMs: [1], wrong: 0 };
      return collectiveRecord({ bytes: factor * 1e6 }, { ours: { 'in-place': timing }, torch: null });
    });
    const { sections } = allreduceBenchmark.toReport(growing);
    const [fit] = sections.find(({ id }) => id === 'latency')!.blocks as Table[];
    expect(fit!.rows).toEqual([
      expect.objectContaining({
        ranks: 4,
        latencyUs: expect.closeTo(1000, 6),
        bandwidth: expect.closeTo(1, 6),
        busBandwidth: expect.closeTo(1.5, 6),
      }),
    ]);
  });

  it('plots time and bandwidth by size, with the roof, and time by ranks', () => {
    const ids = plots.map(({ id }) => id);
    expect(ids).toContain('time-by-size-allreduce-float32-4');
    expect(ids).toContain('time-by-ranks-allreduce-float32-1000000');
    const bandwidth = plots.find(({ id }) => id === 'busbw-by-size-allreduce-float32-4')!;
    expect(bandwidth.references).toEqual([{ label: 'what a link reaches', y: 3 }]);
    expect(bandwidth.series.map(({ name }) => name)).toEqual(['gloo', 'PyTorch gloo']);
    expect(bandwidth.series[0]!.points.at(-1)).toMatchObject({ x: 1000, y: null, note: 'out of memory' });
  });

  it('sums up, and can be rendered', () => {
    expect(report.summary).toEqual([
      'Bus bandwidth over that of torch.distributed, in turn: **2.00×** to **2.00×**.',
      expect.stringContaining('**7.50 GB/s**'),
      'No element was wrong.',
      '1 of 5 cells could not be measured: allreduce · gloo · 4 ranks · 1 GB · float32 (out of memory).',
    ]);
    expect(renderMarkdown(report)).toContain('#wrong');
    const tables = report.sections.flatMap(({ blocks }) => blocks.filter((block) => block.kind === 'table'));
    // Letters that pdflatex does not know would stop it.
    for (const table of tables) expect(renderLatex(table)).toMatch(/^[\x20-\x7e\n]*$/);
    expect(renderHtml(report)).toContain('busbw');
    const wrong = { maxMs: [1], meanMs: [1], wrong: 3 };
    const { summary } = allreduceBenchmark.toReport([collectiveRecord({}, { ours: { 'in-place': wrong } })]);
    expect(summary).toContain('**Wrong elements**: allreduce · gloo · 4 ranks · 1 MB · float32.');
  });

  it('leads with how much time ours takes of theirs, the interval the right way round', () => {
    const beside = (bytes: number, ours: number[], theirs: number[]) =>
      collectiveRecord(
        { bytes },
        {
          ours: { 'in-place': { maxMs: ours, meanMs: ours, wrong: 0 } },
          torch: { status: 'ok', timings: { 'in-place': { maxMs: theirs, meanMs: theirs, wrong: null } } },
        },
      );
    const [slow, fast] = [beside(1e6, [6, 8, 10], [4, 4]), beside(1e7, [1, 1], [3, 4, 5])];
    const { title, chart, summary } = allreduceBenchmark.toReport([slow, fast]);
    expect(title).toBe('An all-reduce takes 0.25× to 2.00× of the time of torch.distributed');
    const [first, second] = (chart as RatioPlot).rows;
    expect(first).toMatchObject({ ours: 8, theirs: 4, low: 1.5, high: 2.5 });
    expect(second).toMatchObject({ ours: 1, theirs: 4, low: 0.2, high: expect.closeTo(1 / 3, 12) });
    expect(summary).toContain(
      'Bus bandwidth over that of torch.distributed, in turn: **0.50×** to **4.00×**.',
    );
  });

  it('draws error bars from a fifth of the samples to four fifths, and counts a single wrong element', () => {
    const maxMs = [10, 11, 12, 13, 14, 30];
    const record = (bytes: number) =>
      collectiveRecord({ bytes }, { ours: { 'in-place': { maxMs, meanMs: maxMs, wrong: 1 } }, torch: null });
    const { sections, summary } = allreduceBenchmark.toReport([record(1e6), record(1e7)]);
    const plot = sections
      .flatMap(({ blocks }) => blocks)
      .find((block) => block.kind === 'plot' && block.id.startsWith('time-by-size')) as Plot;
    expect(plot.series[0]!.points[0]).toEqual({ x: 1, y: 12.5, low: 11, high: 14 });
    expect(summary.join()).toContain('**Wrong elements**: allreduce');
  });
});
