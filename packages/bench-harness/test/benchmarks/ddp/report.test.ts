import { renderMarkdown } from '@roofline/reports';
import { describe, expect, it } from 'vitest';
import { ddpBenchmark } from '../../../src/benchmarks/ddp/benchmark.ts';
import { joinRanks } from '../../../src/benchmarks/ddp/measure.ts';
import { type DdpCell, ddpSweep } from '../../../src/benchmarks/ddp/parameters.ts';
import { readRankEvent } from '../../../src/runner/rank-lines.ts';
import { overlapOf } from '../../../src/benchmarks/ddp/overlap.ts';
import type { ProfiledPass, RankResult } from '../../../src/benchmarks/ddp/result.ts';
import { ddpTrace } from '../../../src/benchmarks/ddp/write-traces.ts';
import { RankError } from '../../../src/errors.ts';
import { rankError } from '../../../src/runner/rank-error.ts';
import { tableIn } from '../../fixtures/blocks.ts';
import {
  ddpCell as cell,
  ddpRecord as record,
  memory,
  ofRank,
  profiledPass,
} from '../../fixtures/ddp-records.ts';
import { outOfMemoryRecord, toyRecord } from '../../fixtures/records.ts';

const { size, shape } = cell;

describe('sharded parameters', () => {
  const alone = (rank: number): RankResult => {
    const { times, ...rest } = ofRank(rank);
    return { ...rest, times: { ...times, localMs: null }, memory: { builtBytes: 500, ...memory } };
  };
  const sharded = toyRecord(
    {},
    {
      ...{ benchmark: 'ddp', result: joinRanks([alone(0), alone(1)]) },
      parameters: { ...cell, optimizer: 'whole', mode: 'fsdp' },
    },
  );

  it('have no passes without communication, and so no time that it adds', () => {
    const [row] = ddpBenchmark.toTable([sharded]).rows;
    expect(row).toMatchObject({ exposedMs: null, savedShare: null, busGigabytesPerSecond: null });
    const text = renderMarkdown(ddpBenchmark.toReport([sharded]));
    expect(text).toContain('its communication takes 10.0 ms alone;');
  });

  it('show what each rank holds once the model is built, and their share of the state', () => {
    const { rows } = tableIn(ddpBenchmark.toReport([sharded]), 'ddp-memory')!;
    // Eight bytes a parameter, divided by two ranks.
    expect(rows.map(({ builtBytes, formulaBytes }) => [builtBytes, formulaBytes])).toEqual([
      [500, 4000],
      [500, 4000],
    ]);
  });

  it('are eager or programs, have no optimizer to shard besides, and two halves of two ranks at least', () => {
    const lists = { context: [16], batch: [1], dtype: ['float32'], execution: ['eager', 'compiled'] };
    const saving = { recompute: ['none'], logits: ['whole'] };
    const cells = ddpSweep.expand({
      ...{
        ...lists,
        ...saving,
        attention: ['plain'],
        memoryBudget: ['none'],
        model: [{ size, shape }],
        mode: ['flat', 'fsdp', 'hybrid', 'tensor', 'fsdp-tensor', 'fsdp-context'],
        worldSize: [2, 4],
      },
      optimizer: ['whole', 'sharded'],
      ...{ backend: 'gloo', bucketBytes: 1, warmup: 0, steps: 1, seed: 0, peer: null },
    } as never);
    const named = cells.map(({ mode, optimizer, worldSize }) => `${mode} ${optimizer} ${worldSize}`);
    expect(named.filter((name) => !name.startsWith('flat')).sort()).toEqual(
      [
        'fsdp whole 2',
        'fsdp whole 4',
        'fsdp-context whole 2',
        'fsdp-context whole 4',
        'fsdp-tensor whole 4',
        'hybrid whole 4',
        'tensor whole 2',
        'tensor whole 4',
      ].flatMap((name) => [name, name]),
    );
    expect(named.filter((name) => name.startsWith('flat'))).toHaveLength(8);
  });
});

describe('ranks', () => {
  it('make a step as long as on the slowest of them', () => {
    expect(joinRanks([ofRank(0), ofRank(1, 5)]).times.stepMs).toEqual([40, 45, 40]);
  });

  it('of PyTorch make steps as long too, or fail together', () => {
    expect(joinRanks([ofRank(0), ofRank(1, 5)]).peer).toEqual({
      status: 'ok',
      torch: '2.0',
      stepMs: [20, 25, 20],
      peakBytes: null,
    });
    expect(joinRanks([ofRank(0), ofRank(2)]).peer).toEqual({ status: 'failed', error: 'no gloo' });
    expect(joinRanks([{ ...ofRank(0), peer: null }]).peer).toBeNull();
  });

  it('report to the cell on lines of their own', () => {
    expect(readRankEvent('[rank 0] @roofline-rank {"type":"progress","done":1,"total":2}')).toEqual({
      ...{ type: 'progress', done: 1, total: 2 },
    });
    expect(readRankEvent('[rank 0] a warning')).toBeNull();
  });

  it('that run out of memory are distinguished from others', () => {
    expect(new RankError('Rank 1 ended with exit code 1:\nOutOfMemoryError: cpu').code).toBe('OUT_OF_MEMORY');
    const killed = rankError({ rank: 1, signal: 'SIGKILL', exitCode: null, lastLines: [], error: null });
    expect(killed.message).toBe('Rank 1 ended with SIGKILL: it said nothing');
    expect(killed.code).toBeUndefined();
  });
});

describe('the profiled passes', () => {
  const reportOf = (passes: readonly ProfiledPass[]) => {
    const result = { ...joinRanks([ofRank(0), ofRank(1)]), profiledPasses: [...passes] };
    const changed = toyRecord({}, { benchmark: 'ddp', parameters: { ...cell }, result });
    return {
      row: ddpBenchmark.toTable([changed]).rows[0]!,
      text: renderMarkdown(ddpBenchmark.toReport([changed])),
    };
  };

  it('say whether their communication is the works of Gloo or kernels', () => {
    const works = reportOf([profiledPass(0), profiledPass(1)]);
    expect(works.text).toContain("the works of Gloo's threads");
    for (const name of [
      'ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)',
      'two_shot_all_reduce',
      '[CUDA memcpy PtoP]',
    ]) {
      const kernels = reportOf([0, 1].map((rank) => profiledPass(rank, 'cuda:0 stream 20', name)));
      expect(kernels.text).toContain(
        'the kernels of NCCL and of reductions over NVLink, and copies between GPUs',
      );
      expect(kernels.row['hiddenShare']).toBeCloseTo(0.75);
    }
  });

  it('that fail on one rank, or communicate nothing, have no share', () => {
    const failed = reportOf([profiledPass(0), { status: 'failed', error: 'no CUPTI\n    at profile' }]);
    expect(failed.row).toMatchObject({ hiddenShare: null, profileError: 'no CUPTI' });
    const silent = reportOf([profiledPass(0, 'cpu', 'Mul'), profiledPass(1, 'cpu', 'Mul')]);
    expect(silent.row['hiddenShare']).toBeNull();
    expect(reportOf([]).row['hiddenShare']).toBeNull();
  });

  it('count time that several kernels share once', () => {
    const span = (startUs: number, durationUs: number) => ({ startUs, durationUs });
    expect(overlapOf([span(0, 4), span(2, 4)], [span(1, 2), span(2, 8)])).toEqual({
      ...{ communicationUs: 9, hiddenUs: 5 },
    });
    expect(overlapOf([], [span(1, 2)])).toEqual({ communicationUs: 2, hiddenUs: 0 });
    expect(overlapOf([span(1, 2)], [])).toEqual({ communicationUs: 0, hiddenUs: 0 });
  });

  it('are one timeline a cell, by one clock, each rank with its communication below it', () => {
    const result = {
      ...joinRanks([ofRank(0), ofRank(1)]),
      profiledPasses: [{ status: 'failed', error: 'no CUPTI' } as const, profiledPass(1), profiledPass(3)],
    };
    const records = (['naive', 'overlap'] as const).map((mode) =>
      toyRecord({}, { benchmark: 'ddp', parameters: { ...cell, mode }, result }),
    );
    const blocks = ddpBenchmark.toReport(records).sections.flatMap((section) => section.blocks);
    const timelines = blocks.filter((block) => block.kind === 'timeline');
    expect(new Set(timelines.map(({ id }) => id)).size).toBe(2);
    const { tracks } = timelines[0]!;
    expect(tracks.map(({ name }) => name)).toEqual(['rank 1', 'communication', 'rank 2', 'communication']);
    expect(tracks[2]!.slices[0]).toEqual({
      ...{ name: 'MatMul', category: 'computation', startUs: 2000, durationUs: 6000 },
    });
    expect(tracks[3]!.slices.map(({ startUs, category }) => [startUs, category])).toEqual([
      [7000, 'communication'],
      [10_000, 'communication'],
    ]);
  });

  it('are in one trace, a process per rank, by one clock', () => {
    const { traceEvents } = ddpTrace([
      { status: 'failed', error: 'no CUPTI' },
      profiledPass(1),
      profiledPass(3),
    ]);
    const named = (name: string) =>
      traceEvents.filter((event) => event.name === name).map(({ pid, args }) => [pid, args['name']]);
    expect(named('process_name')).toEqual([
      [1, 'rank 1'],
      [2, 'rank 2'],
    ]);
    expect(named('thread_name').filter(([pid]) => pid === 2)).toEqual([
      [2, 'Ranges'],
      [2, 'cpu'],
      [2, 'gloo'],
    ]);
    expect(traceEvents.filter(({ name }) => name === 'MatMul').map(({ pid, ts }) => [pid, ts])).toEqual([
      [1, 0],
      [2, 2000],
    ]);
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
      copiedBytes: 100,
    });
    expect(row!['hiddenShare']).toBeCloseTo(0.75);
    expect(row!['savedShare']).toBeCloseTo(0.7);
    expect(row!['busGigabytesPerSecond']).toBeCloseTo(0.5);
  });

  it('take what communication adds pass by pass: medians of each would hide a machine that slows down', () => {
    const times = { synchronizedMs: [10, 20, 60], localMs: [9, 5, 50], communicationMs: [40, 16, 20] };
    const rank = { ...ofRank(0), times: { ...ofRank(0).times, ...times } };
    const slowing = toyRecord(
      {},
      { benchmark: 'ddp', parameters: { ...cell }, result: joinRanks([rank, { ...rank, rank: 1 }]) },
    );
    // 1, 15 and 10 ms; of the medians it would be 20 - 9.
    expect(ddpBenchmark.toTable([slowing]).rows[0]).toMatchObject({
      exposedMs: 10,
      communicationMs: 20,
      savedShare: 0.5,
    });
  });

  it('show each rank next to the formula', () => {
    const report = ddpBenchmark.toReport([record(), record({ optimizer: 'whole' })]);
    const { rows } = tableIn(report, 'ddp-memory')!;
    expect(rows.map((row) => [row['rank'], row['stateBytes'], row['formulaBytes']])).toEqual([
      [0, 4000, 4000],
      [1, 4000, 4000],
      [0, 4000, 8000],
      [1, 4000, 8000],
    ]);
  });

  it('plots cells by what sets them apart', () => {
    const report = ddpBenchmark.toReport([record(), record({ mode: 'flat' })]);
    const plot = report.sections.flatMap(({ blocks }) => blocks).find(({ kind }) => kind === 'plot');
    expect(plot).toMatchObject({
      caption: expect.stringContaining('2 ranks'),
      series: [{ points: [{ x: 'overlap' }, { x: 'flat' }] }, {}, {}],
    });
  });

  it('know nothing to hide on one rank, and keep rows of cells that failed', () => {
    const alone = record({ worldSize: 1 });
    const failed = { ...outOfMemoryRecord(), benchmark: 'ddp', parameters: { ...cell } };
    const report = ddpBenchmark.toReport([alone, failed]);
    expect(report.summary).toEqual([
      'small · context 16 · batch 2 · float32 · sharded optimizer · 1 rank · overlap: a step takes **40.0 ms**.',
      expect.stringMatching(/^1 of 2 cells could not be measured/),
    ]);
    expect(renderMarkdown(report)).toContain('OOM');
    expect(ddpBenchmark.toReport([failed]).sections[0]!.blocks).toHaveLength(1);
  });

  it('without a peer lead with what communication adds to a pass', () => {
    const ofMode = (mode: DdpCell['mode'], worldSize = 2) => {
      const { result, ...rest } = record({ mode, worldSize });
      return { ...rest, result: { ...result, peer: null } };
    };
    const { title, chart } = ddpBenchmark.toReport([ofMode('overlap'), ofMode('flat')]);
    expect(title).toBe('With communication a pass takes 1.10× of its time without');
    expect(chart).toMatchObject({
      ...{ kind: 'ratios', ours: 'With', theirs: 'Without', heads: ['Mode'] },
      rows: [
        { names: ['overlap'], ours: 33, theirs: 30 },
        { names: ['flat'], ours: 33, theirs: 30 },
      ],
    });
    expect(ddpBenchmark.toReport([ofMode('overlap', 1)]).title).toBe('Data-parallel training');
  });

  it('sum up in a sentence', () => {
    expect(ddpBenchmark.toReport([record()]).summary[0]).toContain(
      'its communication takes 10.0 ms alone and adds 3.00 ms; 75.0 % of it ran alongside computation.',
    );
  });
});
