import type { RatioPlot } from '@roofline/reports';
import { describe, expect, it } from 'vitest';
import { overheadBenchmark } from '../../../src/benchmarks/overhead/benchmark.ts';
import type { InstrumentResult } from '../../../src/benchmarks/overhead/result.ts';
import type { CellRecord } from '../../../src/records/record.ts';
import { toyCell, toyRecord } from '../../fixtures/records.ts';

const around = (center: number) => [-0.01, 0, 0.01].map((offset) => center + offset);

const result: InstrumentResult = {
  off: { deviceMs: around(10), wallMs: around(10.2) },
  profile: {
    deviceMs: around(11),
    wallMs: around(11.2),
    readOutMs: around(3),
    events: [250, 250, 250],
    droppedRecords: 4,
  },
  profilerAtRest: {
    deviceMs: around(10.2),
    wallMs: around(10.4),
    readOutMs: around(0),
    events: [0, 0, 0],
    droppedRecords: 0,
  },
  memory: {
    deviceMs: around(10.5),
    wallMs: around(10.6),
    readOutMs: around(2),
    events: [400, 400, 400],
    droppedRecords: 0,
  },
};

function instrumentRecord(changes: Partial<CellRecord> = {}, cell: Partial<typeof toyCell> = {}): CellRecord {
  const { parameters } = toyRecord(cell);
  return toyRecord(
    {},
    { benchmark: 'overhead', parameters: { ...parameters, study: 'instruments' }, result, ...changes },
  );
}

const opRecord = (): CellRecord =>
  toyRecord({}, { benchmark: 'overhead', parameters: { op: 'add' }, result: { hostUs: [5], firstOp: null } });

describe('the overhead of instruments', () => {
  it('is the ratio of a step under one to a step without', () => {
    const { rows } = overheadBenchmark.toTable([instrumentRecord()]);
    expect(rows).toHaveLength(3);
    const [profile, atRest, memory] = rows;
    expect(profile).toMatchObject({
      instrument: 'profiling',
      size: 'small',
      status: 'ok',
      offMs: 10,
      onMs: 11,
      ratio: 1.1,
      events: 250,
      droppedRecords: 4,
      readOutMs: 3,
    });
    expect(profile!['overhead']).toBeCloseTo(0.1);
    expect(profile!['microsecondsPerEvent']).toBeCloseTo(4);
    expect(atRest).toMatchObject({
      instrument: 'a profiler at rest',
      ratio: 1.02,
      microsecondsPerEvent: null,
    });
    expect(memory!['wallRatio']).toBeCloseTo(10.6 / 10.2);
    expect(memory!['microsecondsPerEvent']).toBeCloseTo(1);
  });

  it('leads, step by step under each compared with those without, and is described with what was dropped', () => {
    const { title, chart, summary, sections } = overheadBenchmark.toReport([opRecord(), instrumentRecord()]);
    expect(title).toBe('Under an instrument a training step takes 1.02× to 1.10× of its time without');
    expect(chart).toMatchObject({ kind: 'ratios', ours: 'On', theirs: 'Off', heads: ['Instrument'] });
    const [row] = (chart as RatioPlot).rows;
    expect(row).toMatchObject({ names: ['profiling'], ours: 11, theirs: 10 });
    expect(row!.low).toBeLessThan(1.1);
    expect((chart as RatioPlot).rows.map(({ names }) => names[0])).toEqual([
      'profiling',
      'a profiler at rest',
      'recording memory',
    ]);
    expect(summary).toHaveLength(2);
    expect(summary[1]).toMatch(
      new RegExp(
        '^Added to the time of a train step: profiling \\*\\*10.0 %\\*\\* \\(95 % interval 9.* %\\); a profiler at rest ' +
          '\\*\\*2.00 %\\*\\* .*\\); recording memory \\*\\*5.00 %\\*\\* .*\\)\\. \\*\\*4\\*\\* records were dropped\\.$',
      ),
    );
    expect(sections.map(({ id }) => id)).toEqual(['ops', 'instruments']);
  });

  it('of several models is described from the first to the last', () => {
    const { summary } = overheadBenchmark.toReport([
      instrumentRecord(),
      instrumentRecord({}, { size: 'large' }),
    ]);
    expect(summary[0]).toContain('recording memory **5.00 %** for small to large');
  });

  it('is a gap where a cell failed', () => {
    const failed = instrumentRecord({ status: 'out-of-memory', result: null });
    const { summary, sections } = overheadBenchmark.toReport([failed]);
    expect(summary).toEqual(['Nothing was measured; the report [tells why](#not-measured).']);
    // Of nothing but gaps there is no plot.
    expect(sections[0]!.blocks.map(({ kind }) => kind)).toEqual(['table']);
    expect(overheadBenchmark.toTable([failed]).rows[0]).toMatchObject({ status: 'out-of-memory' });
  });

  it('stands next to that of ops, one finding a row', () => {
    const { rows, columns } = overheadBenchmark.toTable([opRecord(), instrumentRecord()]);
    expect(columns.map(({ key }) => key)).toEqual(['study', 'what', 'finding']);
    expect(rows.map(({ study }) => study)).toEqual(['ops', 'instruments', 'instruments', 'instruments']);
    expect(rows.map(({ finding }) => finding)).toEqual([
      'Host time: 5.00 µs',
      expect.stringMatching(
        /^On: 11\.0 ms; On \/ off: 1\.10×; 95 % interval: 1\.\d+–1\.\d+; Per event: 4\.0 µs$/,
      ),
      expect.stringMatching(/^On: 10\.2 ms; On \/ off: 1\.02×; /),
      expect.stringMatching(/^On: 10\.5 ms; On \/ off: 1\.05×; /),
    ]);
    const { sections } = overheadBenchmark.toReport([opRecord(), instrumentRecord()]);
    expect(sections.map(({ id }) => id)).toEqual(['ops', 'instruments']);
  });

  it('is compared by the steps under instruments', () => {
    const samples = overheadBenchmark.samplesMs(instrumentRecord());
    expect(samples).toHaveLength(3);
    expect(samples[1]).toBeCloseTo(21.5);
  });
});

describe('the cells of overhead', () => {
  const parameters = {
    op: ['add' as const],
    calls: 1,
    repeats: 1,
    model: [{ size: 'small', shape: toyCell.shape }],
    context: [8, 16],
    batch: [1],
    dtype: ['float32' as const],
    warmup: 0,
    seed: 0,
  };

  it('are those of the studies that were asked for', () => {
    const expand = (study: ('ops' | 'instruments')[]) =>
      overheadBenchmark.expand({ ...parameters, study }).map(overheadBenchmark.describe);
    expect(expand(['instruments', 'ops'])).toEqual([
      'add',
      'instruments · small · context 8 · batch 1 · float32',
      'instruments · small · context 16 · batch 1 · float32',
    ]);
    expect(expand(['ops'])).toEqual(['add']);
  });
});
