import { renderHtml } from '@roofline/reports';
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/records/json.ts';
import type { CellRecord } from '../../src/records/record.ts';
import { toyRecord } from '../fixtures/records.ts';
import { tinyBenchmark, tinyNamed } from '../fixtures/tiny-benchmark.ts';

function record(size: number, timesMs: number[], changes: Partial<CellRecord> = {}): CellRecord {
  const parameters: JsonObject = { size };
  const result = { timesMs, sums: timesMs.map((each) => each * 10) };
  return toyRecord({}, { benchmark: 'tiny', parameters, result, ...changes });
}

const lost = record(7, [], { status: 'timeout', result: null, error: { name: 'E', message: 'slow' } });

describe('the table by default', () => {
  it('shows parameters, times, their share of the roof, and the columns of the benchmark', () => {
    const { id, title, columns, rows } = tinyBenchmark.toTable([record(2, [3, 4, 8]), lost]);
    expect([id, title]).toEqual(['tiny', 'Squares']);
    expect(columns.map(({ key, label }) => `${key} ${label}`)).toEqual([
      'size Size',
      'meanMs Time',
      'medianMs Median',
      'floorMs Floor',
      'roofShare Of the roof',
      'sum Sum',
      'parity Parity',
    ]);
    expect(columns[5]).toEqual({ key: 'sum', label: 'Sum', kind: 'number', uncertaintyKey: 'sumStd' });
    expect(columns[6]).toEqual({ key: 'parity', label: 'Parity', kind: 'text' });
    // 2 GFLOP at 1 TFLOP/s take 2 ms, half of the median.
    expect(rows[0]).toEqual({
      size: 2,
      status: 'ok',
      meanMs: 5,
      stdMs: Math.sqrt(7),
      medianMs: 4,
      floorMs: 2,
      roofShare: 0.5,
      sum: 80,
      sumStd: 0.5,
      parity: 'even',
    });
    expect(rows[1]).toEqual({ size: 7, status: 'timeout', error: 'slow' });
  });

  it('has no floor without a ceiling, and no spread of one sample', () => {
    const { columns, rows } = tinyBenchmark.toTable([record(3, [6], { ceilings: null })]);
    expect(columns.map(({ key }) => key)).toEqual(['size', 'meanMs', 'medianMs', 'sum', 'parity']);
    expect(rows[0]).toMatchObject({ stdMs: null, floorMs: null, roofShare: null, sumStd: null });
  });

  it('has no times where none were taken', () => {
    const { columns, rows } = tinyBenchmark.toTable([record(3, [])]);
    expect(columns.map(({ key }) => key)).not.toContain('medianMs');
    expect(rows[0]).toMatchObject({ floorMs: 3, parity: 'odd' });
  });
});

describe('the report by default', () => {
  it('sums up the times, and what was not measured', () => {
    const report = tinyBenchmark.toReport([record(2, [3, 4, 8]), record(3, [6, 6]), lost]);
    expect(report).toMatchObject({ title: 'Squares', subtitle: 'Toy CPU' });
    expect(report.environment).toContainEqual({ label: 'Device', value: 'Toy CPU (cpu)' });
    expect(report.summary).toEqual([
      'The median time is **4.00 ms** for size 2 to **6.00 ms** for size 3.',
      '1 of 3 cells could not be measured: size 7 (timeout).',
    ]);
  });

  it('plots medians next to floors, and warns of a wide spread', () => {
    const { sections } = tinyBenchmark.toReport([record(2, [3, 4, 8]), record(3, []), lost]);
    const [table, note, plot] = sections[0]!.blocks;
    expect(table!.kind).toBe('table');
    expect(note).toEqual({
      kind: 'note',
      tone: 'warning',
      text: 'The spread is wide (standard deviation over 5 % of the mean) for size 2.',
    });
    expect(plot).toMatchObject({
      kind: 'plot',
      series: [
        {
          name: 'time',
          points: [
            { x: 'size 2', y: 4, low: 3, high: 8 },
            { x: 'size 3', y: null, note: 'not timed' },
            { x: 'size 7', y: null, note: 'timeout' },
          ],
        },
        { name: 'floor', points: [{ y: 2 }, { y: 3 }, { y: null }] },
      ],
    });
  });

  it('has no floors where no ceiling is known, and no plot where nothing was timed', () => {
    const plots = (records: CellRecord[]) =>
      tinyBenchmark.toReport(records).sections[0]!.blocks.filter((block) => block.kind === 'plot');
    const withoutCeilings = [2, 3].map((size) => record(size, [4, 4], { ceilings: null }));
    expect(plots(withoutCeilings)[0]!.series).toHaveLength(1);
    expect(plots([record(2, []), record(3, [])])).toEqual([]);
    // One cell has nothing to be compared with.
    expect(plots([record(2, [4, 4])])).toEqual([]);
    expect(tinyBenchmark.toReport([record(2, [4, 4])]).sections[0]!.blocks).toHaveLength(1);
    expect(tinyBenchmark.toReport([record(2, [])]).summary).toEqual([]);
  });
});

it.each(['results', 'times', 'my.own_bench-2'])('a benchmark may be named %s', (name) => {
  const named = tinyNamed(name);
  expect(renderHtml(named.toReport([record(2, [3, 4, 8]), lost]))).toContain(`id="${name}"`);
});

it.each(['', 'my/bench', 'zwei Wörter'])(
  "a name that a report cannot have is refused at once: '%s'",
  (name) => {
    expect(() => tinyNamed(name)).toThrow(
      "defineBenchmark: definition.name: takes letters, digits, '_', '-' and '.'",
    );
  },
);
