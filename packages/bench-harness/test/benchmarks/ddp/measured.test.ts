import { describe, expect, it } from 'vitest';
import { ddpBenchmark } from '../../../src/benchmarks/ddp/benchmark.ts';
import { joinRanks } from '../../../src/benchmarks/ddp/measure.ts';
import { type DdpCell, ddpSweep } from '../../../src/benchmarks/ddp/parameters.ts';
import type { RankResult } from '../../../src/benchmarks/ddp/result.ts';
import { ddpCell, ddpRecord, ofRank, profiledPass } from '../../fixtures/ddp-records.ts';
import { tableIn } from '../../fixtures/blocks.ts';

const rowOf = (changes: Partial<DdpCell>) => ddpBenchmark.toTable([ddpRecord(changes)]).rows[0]!;
const whole = { optimizer: 'whole' } as const;

describe('a cell of divided work', () => {
  it('has the gradients of what a rank has of the parameters, where calls move activations', () => {
    const bytes = (mode: DdpCell['mode'], worldSize: number) =>
      rowOf({ ...whole, mode, worldSize })['gradientBytes'];
    // Of 1000 parameters; other calls are reductions, which the rank has counted.
    expect(bytes('tensor', 4)).toBe(1000);
    expect(bytes('fsdp-tensor', 4)).toBe(1000);
    expect(bytes('fsdp-context', 4)).toBe(4000);
    expect(bytes('overlap', 4)).toBe(5e6);
  });

  it('has half of the ranks share the moments where there are two halves', () => {
    const formula = (mode: DdpCell['mode']) =>
      tableIn(ddpBenchmark.toReport([ddpRecord({ ...whole, mode, worldSize: 4 })]), 'ddp-memory')!.rows[0]![
        'formulaBytes'
      ];
    expect(['overlap', 'hybrid', 'fsdp', 'tensor'].map((mode) => formula(mode as DdpCell['mode']))).toEqual([
      8000, 4000, 2000, 2000,
    ]);
  });

  it('hides nothing that Gloo moves within ops, and what kernels do beside others', () => {
    const hidden = (mode: DdpCell['mode'], stream: string, name?: string) => {
      const record = ddpRecord({ ...whole, mode, worldSize: 2 });
      const profiledPasses = [0, 1].map((rank) => profiledPass(rank, stream, name));
      const result = { ...joinRanks([ofRank(0), ofRank(1)]), profiledPasses };
      return ddpBenchmark.toTable([{ ...record, result }]).rows[0]!['hiddenShare'];
    };
    for (const mode of ['tensor', 'fsdp-context'] as const) {
      expect(hidden(mode, 'gloo')).toBeNull();
      expect(hidden(mode, 'cuda:0 stream 20', 'ncclDevKernel_AllGather_RING_LL')).toBeCloseTo(0.75);
    }
    expect(hidden('fsdp', 'gloo')).toBeCloseTo(0.75);
  });
});

it('one rank saves nothing, for it communicates nothing', () => {
  expect(rowOf({ worldSize: 1 })).toMatchObject({ savedShare: null, hiddenShare: null });
  expect(rowOf({ worldSize: 2 })['savedShare']).toBeCloseTo(0.7);
});

it('the peak of PyTorch is that of the rank that holds the most', () => {
  const peaks = [5, 9, 7].map((peakBytes, rank): RankResult => ({
    ...ofRank(rank),
    peer: { status: 'ok', torch: '2.0', stepMs: [20, 20, 20], peakBytes },
  }));
  expect(joinRanks(peaks).peer).toMatchObject({ peakBytes: 9 });
});

it('halves and pairs are of an even number of ranks, and budgets of programs', () => {
  const cells = ddpSweep.expand({
    ...{
      context: [16],
      batch: [1],
      dtype: ['float32'],
      execution: ['eager', 'compiled'],
      attention: ['plain'],
    },
    ...{ recompute: ['none'], logits: ['whole'], memoryBudget: ['none', '1GiB'] },
    ...{ model: [{ size: 'toy', shape: ddpCell.shape }], mode: ['flat', 'hybrid', 'fsdp-tensor'] },
    ...{ worldSize: [4, 5, 6], optimizer: ['whole'] },
    ...{ backend: 'gloo', bucketBytes: 1, warmup: 0, steps: 1, seed: 0, peer: null },
  } as never);
  const ranks = (mode: string) =>
    new Set(cells.filter((each) => each.mode === mode).map(({ worldSize }) => worldSize));
  expect(['flat', 'hybrid', 'fsdp-tensor'].map(ranks)).toEqual([
    new Set([4, 5, 6]),
    new Set([4, 6]),
    new Set([4, 6]),
  ]);
  const budgets = (execution: string) =>
    new Set(cells.filter((each) => each.execution === execution).map(({ memoryBudget }) => memoryBudget));
  expect(budgets('eager')).toEqual(new Set(['none']));
  expect(budgets('compiled').size).toBe(2);
});

describe('a report', () => {
  /** A record whose steps all take so long, with nothing that is known apart from that. */
  const stepping = (stepMs: number, changes: Partial<DdpCell>) => {
    const ranks = [0, 1].map((rank): RankResult => {
      const { times, ...rest } = ofRank(rank);
      return { ...rest, peer: null, times: { ...times, stepMs: [stepMs, stepMs], localMs: null } };
    });
    return { ...ddpRecord({ ...whole, ...changes }), result: joinRanks(ranks) };
  };

  it('leads with steps beside those of PyTorch, of which it has the time', () => {
    const { title, chart } = ddpBenchmark.toReport([ddpRecord(), ddpRecord({ mode: 'flat' })]);
    expect(title).toBe('A data-parallel step takes 2.00× of the time of DistributedDataParallel');
    expect(chart).toMatchObject({ rows: [40, 40].map((ours) => ({ ours, theirs: 20 })) });
  });

  it('leads with divided layers beside one rank that has as many tokens, and does the same work', () => {
    const divided = stepping(30, { mode: 'tensor', worldSize: 2, batch: 2 });
    const alone = (changes: Partial<DdpCell>) => stepping(40, { worldSize: 1, batch: 4, ...changes });
    const longer = [stepping(60, { ...divided.parameters, context: 32 }), alone({ context: 32 })];
    const { title, chart } = ddpBenchmark.toReport([divided, alone({}), ...longer]);
    expect(title).toBe('With layers divided over ranks a step takes 0.75× to 1.50× of the time of one rank');
    expect(chart).toMatchObject({ rows: [30, 60].map((ours) => ({ ours, theirs: 40 })) });
    for (const other of [{ batch: 2 }, { recompute: 'block' }, { logits: 'chunked' }] as const)
      expect(ddpBenchmark.toReport([divided, alone(other)]).title).not.toContain('divided over ranks');
  });

  it('sums up the quickest steps first', () => {
    const records = [stepping(50, { mode: 'flat' }), stepping(30, { mode: 'naive' }), stepping(40, {})];
    const steps = ddpBenchmark
      .toReport(records)
      .summary.flatMap((text) => /\*\*(\d+)\.0 ms/.exec(text)?.[1] ?? []);
    expect(steps).toEqual(['30', '40', '50']);
  });
});
