import { renderMarkdown } from '@roofline/reports';
import { describe, expect, it } from 'vitest';
import { ddpBenchmark } from '../../../src/benchmarks/ddp/benchmark.ts';
import { joinRanks } from '../../../src/benchmarks/ddp/measure.ts';
import type { DdpCell } from '../../../src/benchmarks/ddp/parameters.ts';
import { readRankEvent } from '../../../src/benchmarks/ddp/rank-lines.ts';
import { rankTable } from '../../../src/benchmarks/ddp/report.ts';
import type { RankResult } from '../../../src/benchmarks/ddp/result.ts';
import { RankError } from '../../../src/errors.ts';
import { outOfMemoryRecord, toyCell, toyRecord } from '../../fixtures/records.ts';

const { size, shape, context, batch } = toyCell;
const cell: DdpCell = {
  ...{ size, shape, context, batch, dtype: 'float32' },
  ...{ optimizer: 'sharded', worldSize: 2, mode: 'overlap' },
};
const memory = { beforeStepBytes: 1000, afterStepBytes: 5000, peakBytes: 9000 };

/** A rank whose passes take 30 ms without communication, which takes 10 ms alone, and 33 ms with it. */
const ofRank = (rank: number, slower = 0): RankResult => ({
  rank,
  times: {
    stepMs: [40, 40 + slower, 40],
    synchronizedMs: [33, 33, 33],
    localMs: [30, 30, 30],
    optimizerMs: [7, 7, 7],
    communicationMs: [10, 10, 10],
  },
  memory,
  bucketBytes: [2e6, 3e6],
  parameterCount: 1000,
  threads: 1,
  peer:
    rank === 2
      ? { status: 'failed', error: 'no gloo' }
      : { status: 'ok', torch: '2.0', stepMs: [20, 20 + slower, 20] },
});
const record = (changes: Partial<DdpCell> = {}) =>
  toyRecord(
    {},
    { benchmark: 'ddp', parameters: { ...cell, ...changes }, result: joinRanks([ofRank(0), ofRank(1, 5)]) },
  );

describe('ranks', () => {
  it('make a step as long as on the slowest of them', () => {
    expect(joinRanks([ofRank(0), ofRank(1, 5)]).times.stepMs).toEqual([40, 45, 40]);
  });

  it('of PyTorch make steps as long too, or fail together', () => {
    expect(joinRanks([ofRank(0), ofRank(1, 5)]).peer).toEqual({
      status: 'ok',
      torch: '2.0',
      stepMs: [20, 25, 20],
    });
    expect(joinRanks([ofRank(0), ofRank(2)]).peer).toEqual({ status: 'failed', error: 'no gloo' });
    expect(joinRanks([{ ...ofRank(0), peer: null }]).peer).toBeNull();
  });

  it('tell the cell on lines of their own', () => {
    expect(readRankEvent('[rank 0] @roofline-rank {"type":"progress","done":1,"total":2}')).toEqual({
      ...{ type: 'progress', done: 1, total: 2 },
    });
    expect(readRankEvent('[rank 0] a warning')).toBeNull();
  });

  it('that run out of memory are told from others', () => {
    expect(new RankError('Rank 1 ended with exit code 1:\nOutOfMemoryError: cpu').code).toBe('OUT_OF_MEMORY');
    expect(new RankError('Rank 1 ended with SIGKILL').code).toBeUndefined();
  });
});

describe('the tables', () => {
  it('show what communication adds, and the share that is hidden', () => {
    const [row] = ddpBenchmark.toTable([record()]).rows;
    expect(row).toMatchObject({
      stepMs: 40,
      peerMs: 20,
      ratio: 2,
      exposedMs: 3,
      communicationMs: 10,
      buckets: 2,
    });
    expect(row!['hiddenShare']).toBeCloseTo(0.7);
    expect(row!['busGigabytesPerSecond']).toBeCloseTo(0.5);
  });

  it('show each rank beside the formula', () => {
    const { rows } = rankTable([record(), record({ optimizer: 'whole' })]);
    expect(rows.map((row) => [row['rank'], row['stateBytes'], row['formulaBytes']])).toEqual([
      [0, 4000, 4000],
      [1, 4000, 4000],
      [0, 4000, 8000],
      [1, 4000, 8000],
    ]);
  });

  it('know nothing to hide on one rank, and keep rows of cells that failed', () => {
    const alone = record({ worldSize: 1 });
    const failed = { ...outOfMemoryRecord(), benchmark: 'ddp', parameters: { ...cell } };
    const report = ddpBenchmark.toReport([alone, failed]);
    expect(report.summary).toEqual([
      'small · context 16 · batch 2 · float32 · 1 rank · overlap · sharded optimizer: a step takes **40.0 ms**.',
    ]);
    expect(renderMarkdown(report)).toContain('OOM');
    expect(ddpBenchmark.toReport([failed]).sections[0]!.blocks).toHaveLength(1);
  });

  it('sum up in a sentence', () => {
    expect(ddpBenchmark.toReport([record()]).summary[0]).toContain(
      'its communication takes 10.0 ms alone and adds 3.00 ms, so 70.0 % of it is hidden.',
    );
  });
});
