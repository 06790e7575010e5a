import {
  renderHtml,
  renderMarkdown,
  renderTerminal,
  type Plot,
  type RatioPlot,
  type RooflinePlot,
  type Table,
} from '@roofline/reports';
import { describe, expect, it } from 'vitest';
import type { E2eCell } from '../../../src/benchmarks/e2e/parameters.ts';
import type { E2eResult } from '../../../src/benchmarks/e2e/result.ts';
import { reportOfRecords } from '../../../src/report/report-of-records.ts';
import { e2eBenchmark } from '../../../src/benchmarks/e2e/benchmark.ts';
import { outOfMemoryRecord, toyRecord, toyResult } from '../../fixtures/records.ts';

const peer: E2eResult['peer'] = {
  status: 'ok',
  torch: '2.11.0',
  python: '3.12.0',
  device: 'Toy GPU',
  deviceMs: [20, 20.1, 19.9, 20],
  wallMs: [20, 20.1, 19.9, 20],
  phasesMs: {},
  peakAllocatedBytes: 2 ** 21,
  peakReservedBytes: 2 ** 22,
};
const records = [
  toyRecord({}, { result: { ...toyResult(), peer } }),
  toyRecord({ mode: 'forward' }, { result: { ...toyResult(), deviceMs: [2, 3, 4, 5], loss: null } }),
  outOfMemoryRecord({ size: 'xl' }),
];

describe('e2e report', () => {
  const report = e2eBenchmark.toReport(records);

  it('computes floor, share of the roof, throughput and ratios', () => {
    const row = e2eBenchmark.toTable(records).rows[0]!;
    // 3 ms of products, and the optimizer's 0.2 GB at 100 GB/s: 2 ms.
    expect(row['floorMs']).toBeCloseTo(5, 10);
    expect(row['roofShare']).toBeCloseTo(0.5, 10);
    expect(row['medianMs']).toBeCloseTo(10, 10);
    expect(row['tokensPerSecond']).toBeCloseTo(3200, 8);
    expect(row['ratio']).toBeCloseTo(0.5, 10);
    expect(row['memoryRatio']).toBe(0.5);
    expect(row['ratioInterval']).toMatch(/^0\.4\d\d–0\.5\d\d$/);
  });

  it('compares reserved memory where PyTorch replays graphs, since only that counts them', () => {
    const graphs = { ...peer, peakAllocatedBytes: 2 ** 10, peakReservedBytes: 2 ** 23 };
    const replayed = (peerExecution: E2eCell['peerExecution']) =>
      toyRecord({ peerExecution }, { result: { ...toyResult(), peer: graphs } });
    const { rows } = e2eBenchmark.toTable([replayed('compile'), replayed('reduce-overhead')]);
    expect(rows.map(({ memoryRatio }) => memoryRatio)).toEqual([2 ** 10, 0.25]);
    expect(rows.map(({ peerPeakBytes }) => peerPeakBytes)).toEqual([2 ** 10, 2 ** 23]);
    expect(e2eBenchmark.toReport([replayed('max-autotune')]).summary).toContain(
      'Peak memory is 0.25× that of PyTorch, of reserved memory where that replays CUDA graphs.',
    );
  });

  it('has a mean of very many ratios, whose product is too small for a number', () => {
    const many = Array.from({ length: 200 }, (_, index) =>
      toyRecord({ context: index + 1 }, { result: { ...toyResult(0.02), peer } }),
    );
    expect(e2eBenchmark.toReport(many).summary[0]).toContain('a training step **0.010×**');
  });

  it("gives the optimizer's bandwidth and its share of the copy ceiling, for train steps", () => {
    const { rows, columns } = e2eBenchmark.toTable(records);
    // 0.2 GB in 1 ms, under a ceiling of 100 GB/s.
    expect(rows[0]!['optimizerGigabytesPerSecond']).toBeCloseTo(200, 8);
    expect(rows[0]!['optimizerCopyShare']).toBeCloseTo(2, 10);
    expect(columns.map(({ label }) => label)).toContain('Optimizer bandwidth');
    const forward = toyResult();
    const work = { forward: forward.work.forward! };
    const result = { ...forward, work, phasesMs: { forward: [1] } };
    const table = e2eBenchmark.toTable([toyRecord({ mode: 'forward' }, { result })]);
    expect(table.columns.map(({ label }) => label)).not.toContain('Optimizer bandwidth');
  });

  it('says in the caption what all rows share, and gives what is swept a column', () => {
    const labels = (table: Table) => table.columns.map(({ label }) => label);
    const one = e2eBenchmark.toTable(records);
    expect(one.caption).toBe('All rows: batch 2, float32.');
    expect(labels(one)).not.toContain('Batch');
    const swept = e2eBenchmark.toTable([toyRecord(), toyRecord({ batch: 8 })]);
    expect(swept.caption).toBe('All rows: float32.');
    expect(labels(swept)).toContain('Batch');
  });

  it("names the library of PyTorch's products, which is left out on a GPU", () => {
    const withBlas = (blas: string | null) =>
      toyRecord({}, { result: { ...toyResult(), peer: { ...peer, blas } } });
    const prescott = withBlas('OpenBLAS 0.3.21, kernels for Prescott');
    expect(e2eBenchmark.toTable([prescott, prescott]).caption).toBe(
      "PyTorch's products: OpenBLAS 0.3.21, kernels for Prescott. All rows: batch 2, float32.",
    );
    expect(e2eBenchmark.toTable([withBlas(null)]).caption).toBe('All rows: batch 2, float32.');
  });

  it('has a table of its own for PyTorch', () => {
    const tables = report.sections[0]!.blocks.filter((block) => block.kind === 'table');
    expect(tables.map(({ id }) => id)).toEqual(['step-times', 'beside-pytorch', 'phases']);
    expect(tables[1]!.rows.map((row) => row['mode'])).toEqual(['train-step']);
  });

  it('gives one step no spread', () => {
    const result = { ...toyResult(), deviceMs: [10] };
    expect(e2eBenchmark.toTable([toyRecord({}, { result })]).rows[0]!['stdMs']).toBeNull();
  });

  it('stacks the phases of train steps, with a gap for one that ran out of memory', () => {
    const blocks = report.sections.flatMap((section) => section.blocks);
    const plot = blocks.find(
      (block) => block.kind === 'plot' && block.id === 'phases-of-a-train-step',
    ) as Plot;
    expect(plot.stacked).toBe(true);
    expect(plot.series.map(({ name, points }) => [name, points[0]!.y])).toEqual([
      ['forward', expect.closeTo(3)],
      ['backward', expect.closeTo(6)],
      ['optimizer', expect.closeTo(1)],
    ]);
    expect(plot.series[0]!.points[1]).toEqual({ x: 'xl', y: null, note: 'out of memory' });
  });

  it('draws times of very different sizes on a logarithmic axis', () => {
    const times = (scale: number) => {
      const cells = [toyRecord(), toyRecord({ size: 'xl' }, { result: toyResult(scale) })];
      const blocks = e2eBenchmark.toReport(cells).sections.flatMap((section) => section.blocks);
      return blocks.find((block) => block.kind === 'plot' && block.id === 'time-by-size') as Plot;
    };
    expect([times(3).y.scale, times(3).marks]).toEqual(['linear', 'bar']);
    expect([times(100).y.scale, times(100).marks]).toEqual(['log', 'dot']);
  });

  it('draws each dtype apart, and the phases of each under the roof', () => {
    const cells = (['float32', 'bfloat16'] as const).flatMap((dtype) =>
      ['small', 'xl'].map((size) => toyRecord({ size, dtype })),
    );
    const ceilings = { matmulFlopsPerSecond: { float32: 1e12, bfloat16: 8e12 }, copyBytesPerSecond: 1e11 };
    const of = (records: typeof cells) =>
      e2eBenchmark
        .toReport(records.map((record) => ({ ...record, ceilings })))
        .sections.flatMap((section) => section.blocks)
        .filter(({ kind }) => kind === 'plot' || kind === 'roofline') as (Plot | RooflinePlot)[];
    const ids = of(cells).map(({ id }) => id);
    expect(ids).toContain('time-by-size-float32');
    expect(ids).toContain('time-by-size-bfloat16');
    const [roofline] = of([cells[0]!]).filter((block) => block.kind === 'roofline');
    expect(roofline!.ceilings).toEqual([{ label: 'float32 products', flopsPerSecond: 1e12 }]);
    expect(roofline!.points.map(({ category, flops, bytes }) => [category, flops, bytes])).toEqual([
      ['forward', 1e9, 1e6],
      ['backward', 2e9, 2e6],
      ['optimizer', 1e4, 2e8],
    ]);
    const unknown = e2eBenchmark.toReport([{ ...cells[0]!, ceilings: null }]);
    expect(unknown.sections.flatMap(({ blocks }) => blocks).map(({ kind }) => kind)).not.toContain(
      'roofline',
    );
  });

  it('begins with ours over PyTorch, else with compiled over eager, else with the share of the roof', () => {
    const twice = (changes: object, result: object) =>
      ['small', 'xl'].map((size) =>
        toyRecord({ size, ...changes }, { result: { ...toyResult(), ...result } }),
      );
    const beside = e2eBenchmark.toReport(twice({}, { peer }));
    expect(beside.title).toBe('A float32 training step takes 0.50× of the time of eager PyTorch');
    expect(beside.chart).toMatchObject({
      ...{ kind: 'ratios', ours: 'Roofline', theirs: 'PyTorch', heads: ['Size'] },
      rows: [{ names: ['small'], ours: expect.closeTo(10), theirs: expect.closeTo(20) }, { names: ['xl'] }],
    });
    const compiled = twice({ execution: 'compiled' }, { deviceMs: [5, 5, 5] });
    const own = e2eBenchmark.toReport([...twice({}, {}), ...compiled]);
    expect(own.title).toBe("A compiled float32 training step takes 0.50× of an eager one's time");
    expect(own.chart).toMatchObject({ kind: 'ratios', ours: 'Compiled', theirs: 'Eager' });
    const alone = e2eBenchmark.toReport(twice({}, {}));
    expect(alone.title).toBe('A float32 training step reaches 50.0 % of the roof');
    expect((alone.chart as Plot).series[0]!.points.map(({ y }) => y)).toEqual([
      expect.closeTo(50),
      expect.closeTo(50),
    ]);
    expect(e2eBenchmark.toReport([outOfMemoryRecord()]).chart).toBeUndefined();
  });

  it("leads with the best of ours against the strongest of theirs, and says where a peer's cell failed", () => {
    const cell = (size: string, execution: 'eager' | 'compiled', dtype: 'float32' | 'bfloat16') =>
      toyRecord({ size, execution, dtype }, { result: { ...toyResult(), peer } });
    const failed = toyRecord(
      { size: '2.7b', execution: 'compiled', dtype: 'bfloat16' },
      {
        result: {
          ...toyResult(),
          peer: { status: 'out-of-memory', error: { name: 'Error', message: 'no memory' } },
        },
      },
    );
    const all = ['small', 'xl'].flatMap((size) => [
      cell(size, 'eager', 'float32'),
      cell(size, 'compiled', 'float32'),
      cell(size, 'compiled', 'bfloat16'),
    ]);
    const { title, chart } = e2eBenchmark.toReport([...all, failed]);
    expect(title).toBe('A compiled bfloat16 training step takes 0.50× of the time of eager PyTorch');
    expect((chart as RatioPlot).rows.map(({ names, note }) => [...names, note])).toEqual([
      ['small', undefined],
      ['xl', undefined],
      ['2.7b', 'PyTorch: out of memory'],
    ]);
  });

  it('sums up what the data say', () => {
    expect(report.summary).toEqual([
      'Of the time of PyTorch 2.11.0 (eager): in float32 a training step **0.50×**.',
      expect.stringMatching(/^Closest to the roof: \*\*143 %\*\* \(small, forward/),
      expect.stringMatching(/^Farthest from it: \*\*50\.0 %\*\* \(small, train-step/),
      'Peak memory is 0.50× that of PyTorch.',
      '1 of 3 cells could not be measured: xl · context 16 · batch 2 · train-step · float32 (out of memory).',
    ]);
    const slow = e2eBenchmark.toReport([toyRecord({}, { result: { ...toyResult(4), peer } })]);
    expect(slow.summary[1]).toBe('Slower than PyTorch: 1 of 1, at most **2.00×** for small.');
  });

  describe('compared with several peers', () => {
    const torch = { ...peer, deviceMs: [20, 20, 20, 20] };
    const { torch: _, ...unnamed } = peer;
    const jax = (ms: number) => ({ ...unnamed, jax: '0.11.0', backToBackMs: [ms, ms, ms, ms], wallMs: [30] });
    const step = (cell: Partial<E2eCell>, theirs: E2eResult['peer'], scale = 1) =>
      toyRecord(cell, { result: { ...toyResult(scale), peer: theirs } });
    const whole = { peerExecution: 'whole-graph', peerAttention: 'sdpa' } as const;
    const jit = { peerExecution: 'jit', peerAttention: 'dot-product' } as const;
    const several = (jaxMs: number) => [
      ...[step(whole, torch), step(jit, jax(16)), step({ ...jit, context: 32 }, jax(jaxMs))],
      step({ ...whole, context: 32 }, torch),
    ];
    const tables = (records: ReturnType<typeof several>) =>
      e2eBenchmark
        .toReport(records)
        .sections.flatMap(({ blocks }) => blocks)
        .filter((block) => block.kind === 'table');

    it('names the strongest of each step, whose time counts', () => {
      const { summary, chart } = e2eBenchmark.toReport(several(25));
      expect(summary.slice(0, 2)).toEqual([
        'Of the time of the strongest peer: in float32 a training step **0.50× to 0.63×**.',
        'The strongest peer is JAX 0.11.0 (jit) for small, context 16. It is PyTorch 2.11.0 (whole-graph) for small, context 32.',
      ]);
      expect(e2eBenchmark.toReport(several(15)).summary[1]).toBe(
        'The strongest peer is JAX 0.11.0 (jit), throughout.',
      );
      expect(chart).toMatchObject({
        ...{ title: 'Whole steps vs PyTorch and JAX', theirs: 'Strongest peer' },
        rows: [
          { names: ['16', expect.any(String)], ours: expect.closeTo(10), theirs: 16 },
          { names: ['32', expect.any(String)], ours: expect.closeTo(10), theirs: 20 },
        ],
      });
    });

    it('has a table of the strongest, and one of all', () => {
      const [strongest, all] = tables(several(25)).filter(({ id }) => id.startsWith('beside-'));
      expect(strongest).toMatchObject({
        id: 'beside-the-strongest',
        title: 'Compared with the strongest peer',
      });
      expect(strongest!.rows.map(({ peer, peerMs, ratio }) => [peer, peerMs, ratio])).toEqual([
        ['JAX 0.11.0', 16, expect.closeTo(0.625)],
        ['PyTorch 2.11.0', 20, expect.closeTo(0.5)],
      ]);
      expect(all!.title).toBe('Compared with PyTorch and JAX');
      expect(all!.rows.map(({ peerMs, peerStepMs }) => [peerMs, peerStepMs])).toEqual([
        [20, undefined],
        [16, 30],
        [25, 30],
        [20, undefined],
      ]);
      expect(all!.columns.map(({ label }) => label)).toEqual(
        expect.arrayContaining(['Compared with', 'Peer', 'Step by step', 'Ours / peer', "Peer's execution"]),
      );
    });

    it('names one alone as it is called', () => {
      const records = [step(jit, jax(16))];
      const [table] = tables(records).filter(({ id }) => id.startsWith('beside-'));
      expect(table!.title).toBe('Compared with JAX');
      expect(table!.columns.map(({ label }) => label)).toEqual(expect.arrayContaining(['JAX', 'Ours / JAX']));
      const { summary, title } = e2eBenchmark.toReport(records);
      expect(summary[0]).toBe('Of the time of JAX 0.11.0 (jit): in float32 a training step **0.63×**.');
      expect(title).toMatch(/ training step takes 0\.63× of the time of JAX$/);
    });
  });

  it('warns of a wide spread', () => {
    const notes = report.sections.flatMap(({ blocks }) => blocks).filter(({ kind }) => kind === 'note');
    expect(notes).toEqual([
      expect.objectContaining({
        tone: 'warning',
        text: expect.stringContaining('small · context 16 · batch 2 · forward · float32'),
      }),
    ]);
  });

  it('warns of a warm-up that was too short, and then not of the spread that comes of it', () => {
    const deviceMs = Array.from({ length: 20 }, (_, step) => 10 + 20 * 0.8 ** step);
    const record = toyRecord({}, { result: { ...toyResult(), deviceMs } });
    const { sections } = e2eBenchmark.toReport([record]);
    const notes = sections.flatMap(({ blocks }) => blocks).filter(({ kind }) => kind === 'note');
    expect(notes).toEqual([
      expect.objectContaining({
        text: expect.stringMatching(
          /^The warm-up was too short for small · context 16 · batch 2 · train-step/,
        ),
      }),
    ]);
  });

  it('shows an out-of-memory cell as a row and as a gap in the plot', () => {
    expect(renderTerminal(e2eBenchmark.toTable(records), { width: 200 })).toContain('xl');
    const plot = report.sections.flatMap(({ blocks }) => blocks).find((block) => block.kind === 'plot')!;
    const points = plot.series.find(({ name }) => name === 'train-step')!.points;
    expect(points[1]).toEqual({ x: 'xl', y: null, note: 'out of memory' });
  });

  it('renders, alone and joined with another device', async () => {
    const environment = {
      ...records[0]!.environment,
      device: { ...records[0]!.environment.device, type: 'cuda' as const, name: 'Toy GPU' },
    };
    const both = await reportOfRecords([...records, toyRecord({}, { environment })]);
    expect(both.sections.map(({ id }) => id)).toEqual([
      ...['e2e', 'e2e-times', 'e2e-plots', 'e2e-roof', 'e2e-not-measured'],
      ...['e2e-2', 'e2e-2-times', 'e2e-2-roof'],
      'runs',
    ]);
    expect(renderMarkdown(both)).toContain('Toy GPU');
    expect(renderHtml(report)).toContain('<html');
  });

  it('says what a lower precision gains, and where least and most, where both were measured', () => {
    const cell = (size: string, dtype: 'float32' | 'bfloat16', scale: number, parameterCount: number) =>
      toyRecord({ size, dtype }, { result: { ...toyResult(scale), parameterCount } });
    const pairs = [cell('small', 'float32', 1, 1), cell('small', 'bfloat16', 0.8, 1)];
    const larger = [cell('xl', 'float32', 10, 9), cell('xl', 'bfloat16', 4, 9)];
    const last = (records: typeof pairs) => e2eBenchmark.toReport(records).summary.at(-1);
    expect(last(pairs)).toBe('`bfloat16` runs `train-step` at **1.25×** the speed of float32.');
    expect(last([...larger, ...pairs])).toBe(
      '`bfloat16` runs `train-step` at **1.77×** (1.25× for small, 2.50× for xl) the speed of float32, in the geometric mean.',
    );
    expect(last([...larger, pairs[0]!])).toContain('at **2.50×** the speed of float32.');
    expect(last([pairs[0]!, larger[1]!])).not.toContain('the speed of float32');
  });
});
