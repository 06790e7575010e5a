import type { Plot } from '@roofline/reports';
import { describe, expect, it } from 'vitest';
import { overheadBenchmark } from '../../../src/benchmarks/overhead/benchmark.ts';
import type { OpResult } from '../../../src/benchmarks/overhead/result.ts';
import { cellKey, SCHEMA_VERSION, sweepIdentity, type CellRecord } from '../../../src/records/record.ts';
import { toyEnvironment } from '../../fixtures/environment.ts';

const settings = { calls: 100, repeats: 3 };

function record(op: string, firstOp: OpResult['firstOp'], changes: Partial<CellRecord> = {}): CellRecord {
  return {
    schemaVersion: SCHEMA_VERSION,
    benchmark: 'overhead',
    key: cellKey(sweepIdentity('overhead', settings, toyEnvironment), { op }),
    status: 'ok',
    parameters: { op },
    settings,
    environment: toyEnvironment,
    ceilings: null,
    startedAt: '2026-01-02T03:04:05.000Z',
    durationMs: 1,
    result: { hostUs: [4, 6, 5], firstOp },
    error: null,
    ...changes,
  };
}

describe('overhead', () => {
  it('reports host times, and first ops where they were measured', () => {
    const { rows, columns } = overheadBenchmark.toTable([record('add', { coldMs: 900, warmMs: 300 })]);
    expect(rows).toEqual([
      {
        op: 'add',
        status: 'ok',
        hostUs: 5,
        hostMeanUs: 5,
        hostStdUs: 1,
        hostMinUs: 4,
        coldMs: 900,
        warmMs: 300,
      },
    ]);
    expect(columns.map(({ key }) => key)).toContain('warmMs');
    const onCpu = overheadBenchmark.toTable([record('add', null)]);
    expect(onCpu.columns.map(({ key }) => key)).not.toContain('warmMs');
  });

  it('sums up what ops cost, and shows a failed one as a gap', () => {
    const error = { name: 'Error', message: 'no softmax' };
    const failed = record('softmax', null, { status: 'failed', result: null, error });
    const { title, chart, summary, sections } = overheadBenchmark.toReport([
      record('add', { coldMs: 900, warmMs: 300 }),
      failed,
    ]);
    expect(summary).toEqual([
      'An eager op costs the host **5.00 µs** (`add`).',
      'The first `add` of a process takes **900 ms** with no kernel compiled yet, and **300 ms** with all of them in ' +
        'the cache.',
      '1 of 2 cells could not be measured: softmax (failed).',
    ]);
    expect(title).toBe('An eager op costs the host 5.00 µs');
    // What leads is not shown again.
    expect(sections[0]!.blocks.map(({ kind }) => kind)).toEqual(['table']);
    expect((chart as Plot).series[0]!.points).toEqual([
      { x: 'add', y: 5, low: 4, high: 6 },
      { x: 'softmax', y: null, note: 'failed' },
    ]);
  });

  it('gives its samples in milliseconds for comparisons', () => {
    expect(overheadBenchmark.samplesMs(record('add', null))).toEqual([0.004, 0.006, 0.005]);
  });
});
