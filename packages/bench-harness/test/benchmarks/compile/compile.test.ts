import { renderHtml } from '@roofline/reports';
import { describe, expect, it } from 'vitest';
import { compileBenchmark } from '../../../src/benchmarks/compile/benchmark.ts';
import { groupCalls, measureCompile } from '../../../src/benchmarks/compile/measure.ts';
import { compileSweep } from '../../../src/benchmarks/compile/parameters.ts';
import { compileResult } from '../../../src/benchmarks/compile/result.ts';
import type { CompileResult } from '../../../src/benchmarks/compile/result.ts';
import { tableIn } from '../../fixtures/blocks.ts';
import { toyCell, toyRecord } from '../../fixtures/records.ts';
import { runMain } from '../../fixtures/run-main.ts';

const cell = { ...toyCell, execution: 'compiled' } as const;

const result: CompileResult = {
  compilation: { calls: 3, durationMs: 150 },
  ...{ tracedCalls: 30, calls: 28, launches: 1, nodesBefore: 33, nodes: 25 },
  ...{ repeatedCalls: 3, bytesInRegisters: 4096, arenaBytes: 3 * 2 ** 20, eagerPeakBytes: 4 * 2 ** 20 },
  ...{
    carriedCasts: 7,
    carriedBytes: 2048,
    accumulatedProducts: 5,
    mergedProducts: 4,
    operandBytesSaved: 1024,
    multipliedGradients: 6,
    callsBeside: 8,
  },
  compileTimes: { coldMs: 900, warmMs: 200 },
  table: [
    { op: 'fused_mul_add', members: ['mul', 'add'], range: 'a', outputs: 'float32 [2]', calls: 6, nodes: 6 },
    { op: 'matmul', members: [], range: 'a', outputs: 'float32 [2]', calls: 16, nodes: 17 },
    { op: 'fused_mul_add', members: ['mul', 'add'], range: 'b', outputs: 'float32 [3]', calls: 2, nodes: 2 },
  ],
  ...{ deviceMs: [1, 2, 3], hostMs: [0.1, 0.2, 0.3] },
};
const record = (changes: Partial<CompileResult> = {}, mode: typeof cell.mode | 'forward' = cell.mode) =>
  toyRecord({ ...cell, mode }, { benchmark: 'compile', result: { ...result, ...changes } });

describe('roofline compile', () => {
  it('compiles every cell', () => {
    const sweep = compileSweep.parameters.parse({
      model: [{ size: toyCell.size, shape: toyCell.shape }],
      ...{ context: [8], batch: [2], mode: ['forward', 'train-step'], dtype: ['float32'] },
      ...{ attention: ['plain', 'flash'], steps: 1, seed: 0, coldAndWarm: false },
    });
    const cells = compileSweep.expand(sweep);
    expect(cells).toHaveLength(4);
    expect(new Set(cells.map(({ execution }) => execution))).toEqual(new Set(['compiled']));
  });

  it('says what became of a step, on the CPU', async () => {
    const told: number[][] = [];
    const measured = await measureCompile(cell, {
      settings: { steps: 2, seed: 0, coldAndWarm: true },
      deviceLabel: 'cpu',
      progress: (...words) => void told.push(words.slice(0, 2) as number[]),
    });
    expect(told).toEqual([
      [1, 2],
      [2, 2],
    ]);
    // The CPU compiles no kernels, of which some could be there.
    expect(measured.compileTimes).toBeNull();
    expect(measured.compilation.calls).toBeGreaterThanOrEqual(3);
    expect(measured.calls).toBeLessThanOrEqual(measured.tracedCalls);
    expect(measured.nodesBefore).toBe(measured.nodes);
    expect(measured.table.reduce((sum, { calls }) => sum + calls, 0)).toBe(measured.calls);
    const ranges = new Set(measured.table.map(({ range }) => range.split(' > ')[0]));
    expect(ranges).toEqual(new Set(['forward', 'backward', 'optimizer']));
    expect([measured.deviceMs, measured.hostMs].map(({ length }) => length)).toEqual([2, 2]);
  });

  it('reads records from before products were counted and compile times taken apart', () => {
    const newer = {
      ...{ compileTimes: null, accumulatedProducts: 0, mergedProducts: 0, operandBytesSaved: 0 },
      ...{ repeatedCalls: 0, multipliedGradients: 0, callsBeside: 0 },
    };
    const older = Object.fromEntries(Object.entries(result).filter(([key]) => !(key in newer)));
    expect(compileResult.parse(older)).toEqual({ ...older, ...newer });
  });

  it('groups calls that are alike in all layers', () => {
    const call = (layer: number, nodes: number | null) => ({
      ...{ op: 'add', members: [], range: ['forward', `layers.${layer}`], launch: 0, inputs: [], nodes },
      waitedForBy: null,
      outputs: [{ storage: layer, source: 'made' as const, dtype: 'float32' as const, shape: [2, 3] }],
    });
    const row = { op: 'add', members: [], range: 'forward > layers.*', outputs: 'float32 [2, 3]' };
    expect(groupCalls([call(0, 1), call(11, 2)])).toEqual([{ ...row, calls: 2, nodes: 3 }]);
    expect(groupCalls([call(0, 1), call(1, null)])).toEqual([{ ...row, calls: 2, nodes: null }]);
    expect(groupCalls([call(0, 1), { ...call(1, 1), op: 'mul' }])).toHaveLength(2);
  });

  it('has tables of programs, of what was fused, and of calls', () => {
    const nothing = {
      ...{
        table: [],
        arenaBytes: 0,
        repeatedCalls: 0,
        bytesInRegisters: 0,
        carriedCasts: 0,
        carriedBytes: 0,
      },
      ...{ accumulatedProducts: 0, mergedProducts: 0, operandBytesSaved: 0, compileTimes: null },
      multipliedGradients: 0,
    };
    const records = [record(), record(nothing, 'forward')];
    const [first, second] = compileBenchmark.toTable(records).rows;
    expect(first).toMatchObject({
      ...{ tracedCalls: 30, calls: 28, nodesBefore: 33, nodes: 25, bytesInRegisters: 4096, arenaRatio: 0.75 },
      ...{
        compileMs: 150,
        coldMs: 900,
        warmMs: 200,
        hostMs: 0.2,
        deviceMs: 2,
        carriedCasts: 7,
        carriedBytes: 2048,
      },
      ...{ accumulatedProducts: 5, mergedProducts: 4, operandBytesSaved: 1024, repeatedCalls: 3 },
      multipliedGradients: 6,
    });
    const columns = (rows: typeof records) => compileBenchmark.toTable(rows).columns.map(({ key }) => key);
    for (const key of [
      'arenaBytes',
      'arenaRatio',
      'bytesInRegisters',
      'repeatedCalls',
      'carriedCasts',
      'mergedProducts',
      'accumulatedProducts',
      'multipliedGradients',
      'coldMs',
      'warmMs',
    ]) {
      expect(second).not.toHaveProperty(key);
      expect(columns(records)).toContain(key);
      expect(columns([records[1]!])).not.toContain(key);
    }
    expect(tableIn(compileBenchmark.toReport(records), 'fused')!.rows).toEqual([
      { status: 'ok', cell: 'small, train-step', members: 'mul + add', calls: 8, nodesBefore: 16, nodes: 8 },
    ]);
    const unfused = compileBenchmark.toReport([record({ table: [result.table[1]!] })]);
    expect(tableIn(unfused, 'fused')).toBeUndefined();
    expect(compileBenchmark.toOverview([record()]).notes).toEqual([]);
    expect(compileBenchmark.toOverview([record({ table: [result.table[1]!] })]).notes).toEqual([
      expect.stringMatching(/^Nothing was fused in small: on the CPU its 28 calls take 1 launch,/),
    ]);
    const calls = tableIn(compileBenchmark.toReport(records), 'calls-0')!;
    expect(calls.rows[0]).toMatchObject({ op: 'fused_mul_add', members: 'mul + add', calls: 6, nodes: 6 });
    expect(tableIn(unfused, 'calls-0')!.columns.map(({ key }) => key)).not.toContain('members');
  });

  it('has a report', () => {
    const report = compileBenchmark.toReport([
      record(),
      record({ nodes: 30, compilation: { calls: 2, durationMs: 20 } }, 'forward'),
    ]);
    expect(report.title).toBe('A compiled step runs 0.76× to 0.91× of the kernels of its ops');
    expect(report.chart).toMatchObject({
      ...{ kind: 'ratios', value: 'number', ours: 'After', theirs: 'Before' },
      rows: [
        { names: ['train-step'], ours: 25, theirs: 33 },
        { names: ['forward'], ours: 30, theirs: 33 },
      ],
    });
    expect(report.summary).toEqual([
      'Fusing leaves **0.76×** for small, train-step to **0.91×** for small, forward of the kernels of a step.',
      'A program works in **0.75×** for small, train-step to small, forward of the memory of its ops run eagerly.',
      'Compiling takes **150 ms** for small, train-step to **20.0 ms** for small, forward; with no kernel compiled yet ' +
        '**900 ms** for small, train-step to small, forward, with all of them in the cache **200 ms** for small, ' +
        'train-step to small, forward.',
    ]);
    const html = renderHtml(report);
    for (const text of ['What was fused', 'Program of small, train-step', 'mul + add'])
      expect(html).toContain(text);
  });

  it('leads with launches where fusing leaves as many nodes, as on the CPU', () => {
    const { title, chart } = compileBenchmark.toReport([
      record({ nodes: 33, launches: 7 }),
      record({ nodes: 33, launches: 14 }, 'forward'),
    ]);
    expect(title).toBe('A compiled step takes 0.25× to 0.50× as many launches as it has calls');
    expect(chart).toMatchObject({ ours: 'Launches', theirs: 'Calls' });
  });

  it('is compiled in any case', async () => {
    const { exitCode, stderr } = await runMain(['compile', '--execution', 'eager']);
    expect(exitCode).toBe(2);
    expect(stderr).toContain('execution');
  });
});
