import { describe, expect, it } from 'vitest';
import {
  compareRecords,
  comparisonSummary,
  comparisonTable,
  differences,
  regressions,
  type Comparison,
} from '../../src/report/compare.ts';
import { e2eBenchmark } from '../../src/benchmarks/e2e/benchmark.ts';
import type { CellRecord } from '../../src/records/record.ts';
import { shapeParameters } from '../../src/attention/shape.ts';
import { warmupCellParameters } from '../../src/benchmarks/warmup/parameters.ts';
import { titleOf } from '../../src/parameters/parameter.ts';
import { collectiveRecord } from '../fixtures/collective-records.ts';
import { toyEnvironment } from '../fixtures/environment.ts';
import { outOfMemoryRecord, toyCell, toyRecord, toyResult } from '../fixtures/records.ts';

const before = [toyRecord(), toyRecord({ context: 32 }), toyRecord({ context: 64 })];
const after = [
  toyRecord({}, { result: toyResult(1.2) }),
  outOfMemoryRecord({ context: 32 }),
  toyRecord({ context: 128 }),
];

describe('compareRecords', () => {
  it('pairs equal cells and gives the ratio with its interval', async () => {
    const comparisons = await compareRecords(before, after);
    expect(comparisons).toHaveLength(2);
    const { ratio } = comparisons[0]!.times!;
    expect(ratio.ratio).toBeCloseTo(1.2, 10);
    expect(ratio.low).toBeGreaterThan(1.15);
    expect(comparisons[1]!.times).toBeNull();
  });

  it('counts slower cells and lost ones as regressions', async () => {
    const comparisons = await compareRecords(before, after);
    expect(regressions(comparisons, 1.05)).toEqual([
      {
        cell: 'e2e: small · context 16 · batch 2 · train-step · float32',
        reason: expect.stringMatching(/^1\.20× the time \(1\.1\d\d–1\.2\d\d\)$/),
      },
      {
        cell: 'e2e: small · context 32 · batch 2 · train-step · float32',
        reason: 'out of memory now',
      },
    ]);
    expect(regressions(comparisons, 1.3)).toHaveLength(1);
    expect(regressions(await compareRecords(before, before), 1.05)).toEqual([]);
  });

  it('gives a verdict for each row', async () => {
    const { rows, columns } = comparisonTable(await compareRecords(before, after));
    expect(rows.map((row) => row['verdict'])).toEqual(['slower', 'ok before, out of memory after']);
    expect(columns.map(({ key }) => key)).not.toContain('shape');
    const same = comparisonTable(await compareRecords(before, before)).rows[0]!;
    expect(same['verdict']).toBe('no clear difference');
  });

  it('titles parameters as the tables of reports do, and leaves out ways to run that are the usual ones', async () => {
    const titles = async (records: readonly CellRecord[]) =>
      comparisonTable(await compareRecords(records, records)).columns.map(({ label }) => label);
    const measured = ['Before', 'After', 'Ratio', '95 % interval', 'Memory', 'Verdict'];
    expect(await titles([toyRecord()])).toEqual(['Size', 'Context', 'Batch', 'Mode', 'Dtype', ...measured]);
    const compiled = toyRecord({ execution: 'compiled', peerAttention: 'sdpa', peerExecution: 'compile' });
    const ways = ['Execution', "Peer's attention", "Peer's execution"];
    expect((await titles([toyRecord(), compiled])).sort()).toEqual(
      ['Size', 'Context', 'Batch', 'Mode', 'Dtype', ...ways, ...measured].sort(),
    );
    const { columns } = e2eBenchmark.toTable([toyRecord(), compiled]);
    expect(columns.map(({ label }) => label)).toEqual(expect.arrayContaining(ways));
  });

  it('titles ranks, sizes and head dimensions so, too', async () => {
    const table = async (records: readonly CellRecord[]) =>
      comparisonTable(await compareRecords(records, records));
    const collective = collectiveRecord({ backend: 'gloo', ranks: 2, bytes: 10e6 });
    const { columns, rows } = await table([collective]);
    expect(columns.slice(0, 5).map(({ label }) => label)).toEqual([
      'Op',
      'Backend',
      'Ranks',
      'Size',
      'Dtype',
    ]);
    expect(rows[0]).toMatchObject({ size: '10 MB', bytes: 10e6 });
    expect(titleOf('headDimension', shapeParameters.headDimension)).toBe('d');
    expect(titleOf('warmup', warmupCellParameters.warmup)).toBe('Warm-up');
    expect(titleOf('headCount')).toBe('Head count');
  });

  it('takes what a record of an older version lacks from the newer one', async () => {
    const { attention: _, execution: __, ...older } = toyCell;
    const both = await compareRecords(
      [toyRecord({ attention: 'flash' }), toyRecord({}, { parameters: older })],
      [toyRecord({ attention: 'flash' }), toyRecord()],
    );
    expect(comparisonTable(both).rows.map((row) => row['attention'])).toEqual(['flash', 'plain']);
  });

  it('says what got slower beyond noise, what was lost, and what has no counterpart', async () => {
    expect(comparisonSummary(await compareRecords(before, after), 2)).toEqual([
      expect.stringMatching(
        /^1 of 1 got slower beyond noise: e2e: small · context 16 · batch 2 · train-step · float32 1\.20× \(1\.1\d\d–1\.2\d\d\)\.$/,
      ),
      'e2e: small · context 32 · batch 2 · train-step · float32 was measured before, and is out of memory now.',
      '2 cells are in one of the two alone.',
    ]);
    expect(comparisonSummary(await compareRecords(before, before), 0)).toEqual([
      'Nothing got slower or faster beyond noise.',
    ]);
  });

  it('contrasts peak memory, which has no noise', async () => {
    const { memory } = toyResult();
    const more = { ...memory, peakAllocatedBytes: 1.2 * memory.peakAllocatedBytes };
    const grown = await compareRecords(
      [toyRecord()],
      [toyRecord({}, { result: { ...toyResult(), memory: more } })],
    );
    expect(comparisonTable(grown).rows[0]!['memoryRatio']).toBeCloseTo(1.2, 10);
    expect(regressions(grown, 1.1).map(({ reason }) => reason)).toEqual(['1.20× the peak memory']);
    expect(regressions(grown, 1.3)).toEqual([]);
    expect(comparisonSummary(grown, 0)).toEqual([
      'Nothing got slower or faster beyond noise.',
      'Peak memory changed: e2e: small · context 16 · batch 2 · train-step · float32 1.20×.',
    ]);
  });

  it('tells benchmarks and devices apart', async () => {
    const device = { ...toyEnvironment.device, type: 'cuda' as const, name: 'Toy GPU' };
    const warmup = toyRecord({}, { benchmark: 'warmup', parameters: { ...toyCell, warmup: 0 } });
    const elsewhere = [toyRecord(), warmup].map((record) => ({
      ...record,
      environment: { ...toyEnvironment, device },
    }));
    const comparisons = await compareRecords([toyRecord(), warmup], elsewhere);
    expect(comparisonTable(comparisons).rows.map(({ benchmark }) => benchmark)).toEqual(['e2e', 'warmup']);
    expect(comparisonTable(comparisons).columns[0]!.key).toBe('benchmark');
    expect(differences(comparisons)).toEqual(['Different device: Toy CPU, 2 threads before, Toy GPU after.']);
  });

  it('says that a CPU calculated with other threads', async () => {
    const device = { ...toyEnvironment.device, properties: { threads: 1 } };
    const fewer = toyRecord({}, { environment: { ...toyEnvironment, device } });
    expect(differences(await compareRecords(before, [fewer]))).toEqual([
      'Different device: Toy CPU, 2 threads before, Toy CPU, 1 threads after.',
    ]);
  });

  it('says which settings and variables differ', async () => {
    const settings = { warmup: 10, steps: 4, seed: 0, peer: { name: 'torch', version: '2.11.0' } };
    const environment = { ...toyEnvironment, variables: { ROOFLINE_CPU_THREADS: '1' } };
    expect(differences(await compareRecords(before, [toyRecord({}, { settings, environment })]))).toEqual([
      'Different warmup: 1 before, 10 after.',
      'Different peer: none before, torch 2.11.0 after.',
      'Different ROOFLINE_CPU_THREADS: none before, 1 after.',
    ]);
    expect(differences(await compareRecords(before, after))).toEqual([]);
    const inTurn = { ...toyRecord().settings, sweepsEager: true };
    expect(differences(await compareRecords(before, [toyRecord({}, { settings: inTurn })]))).toEqual([
      'Different eager steps in turn with compiled ones: none before, yes after.',
    ]);
  });

  it('lets noise pass, however large its ratio', async () => {
    const noisy = (deviceMs: number[]) => [toyRecord({}, { result: { ...toyResult(), deviceMs } })];
    const comparisons = await compareRecords(noisy([8, 9, 10, 30]), noisy([8, 9.5, 12.5, 30]));
    expect(comparisons[0]!.times!.ratio.ratio).toBeGreaterThan(1.1);
    expect(regressions(comparisons, 1.05)).toEqual([]);
  });

  it('takes no verdict from one sample', async () => {
    const once = (ms: number) => [toyRecord({}, { result: { ...toyResult(), deviceMs: [ms] } })];
    const comparisons = await compareRecords(once(10), once(30));
    expect(regressions(comparisons, 1.05)).toEqual([]);
    expect(comparisonSummary(comparisons, 0)).toEqual(['Nothing got slower or faster beyond noise.']);
    expect(comparisonTable(comparisons).rows[0]).toMatchObject({
      interval: 'one sample',
      verdict: 'one sample',
    });
  });

  it('pairs a cell with the one of its own settings, where there are several', async () => {
    const slow = { result: toyResult(2), settings: { ...toyRecord().settings, warmup: 9 }, key: 'longer' };
    const both = [toyRecord(), toyRecord({}, slow)];
    const comparisons = await compareRecords(both, both);
    expect(comparisons.map(({ before, after }) => before === after)).toEqual([true, true]);
    expect(differences(comparisons)).toEqual([]);
  });

  it('pairs a cell that is there in other settings alone with the last of them', async () => {
    const of = (warmup: number) =>
      toyRecord({}, { settings: { ...toyRecord().settings, warmup }, key: `of-${warmup}` });
    const [only, ...others] = await compareRecords([toyRecord()], [of(5), of(7), of(9)]);
    expect(only!.after.settings['warmup']).toBe(9);
    expect(others).toEqual([]);
  });

  it('shows what was not measured before by how it ended then', async () => {
    const [row] = comparisonTable(await compareRecords([outOfMemoryRecord()], [toyRecord()])).rows;
    expect(row).toMatchObject({ status: 'out-of-memory', verdict: 'out of memory before, ok after' });
  });
});

/** A cell that takes this ratio of its time, with the interval of that. */
const timed = (
  ratio: number,
  [low, high]: [number, number],
  memoryRatio: number | null = null,
): Comparison => ({
  ...{ cell: `at ${ratio}`, before: toyRecord(), after: toyRecord(), memoryRatio },
  times: { beforeMs: 10, afterMs: 10 * ratio, ratio: { ratio, low, high } },
});

describe('the interval of a ratio', () => {
  it('makes a regression of what lies above the limit and is no noise, however near 1 its lower end', () => {
    const isWorse = (limit: number, ...cell: Parameters<typeof timed>) =>
      regressions([timed(...cell)], limit).length > 0;
    expect(isWorse(1.1, 1.2, [1.01, 1.4])).toBe(true);
    expect(isWorse(1.1, 1.2, [1, 1.4])).toBe(false);
    expect(isWorse(1.1, 1.1, [1.05, 1.15])).toBe(false);
    // Below 1 a limit asks for a gain, which noise alone does not miss.
    expect(isWorse(0.8, 0.9, [0.85, 0.95])).toBe(true);
    expect(isWorse(0.8, 0.9, [0.8, 1])).toBe(false);
    expect(isWorse(1.1, 1, [0.9, 1.1], 1.1)).toBe(false);
    expect(isWorse(1.1, 1, [0.9, 1.1], 1.11)).toBe(true);
  });

  it('gives a verdict where it leaves 1 outside, and none where it ends there', () => {
    const intervals: [number, number][] = [
      [0.8, 0.99],
      [0.8, 1],
      [1, 1.2],
      [1.01, 1.2],
    ];
    const { rows } = comparisonTable(intervals.map((interval) => timed(1, interval)));
    expect(rows.map(({ verdict }) => verdict)).toEqual([
      ...['faster', 'no clear difference', 'no clear difference', 'slower'],
    ]);
  });

  it('has what got slower and faster the most come first, and memory that shrank be said as well', () => {
    const slower = [timed(1.2, [1.1, 1.3]), timed(1.9, [1.8, 2])];
    const faster = [timed(0.9, [0.8, 0.95]), timed(0.5, [0.4, 0.6], 0.75)];
    expect(comparisonSummary([...slower, ...faster], 1)).toEqual([
      '2 of 4 got slower beyond noise: at 1.9 1.90× (1.800–2.000); at 1.2 1.20× (1.100–1.300).',
      '2 of 4 got faster beyond noise: at 0.5 0.50× (0.400–0.600); at 0.9 0.90× (0.800–0.950).',
      'Peak memory changed: at 0.5 0.75×.',
      '1 cell is in one of the two alone.',
    ]);
  });
});
