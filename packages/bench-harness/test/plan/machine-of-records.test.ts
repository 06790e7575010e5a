import { describe, expect, it } from 'vitest';
import { joinRanks } from '../../src/benchmarks/ddp/measure.ts';
import type { DdpCell } from '../../src/benchmarks/ddp/parameters.ts';
import type { RankResult } from '../../src/benchmarks/ddp/result.ts';
import type { Outcome, Timed } from '../../src/benchmarks/flash/result.ts';
import { machineOf } from '../../src/plan/machine-of-records.ts';
import { flashRecord } from '../fixtures/attention-records.ts';
import { collectiveRecord } from '../fixtures/collective-records.ts';
import { ddpRecord, ofRank } from '../fixtures/ddp-records.ts';
import { toyEnvironment } from '../fixtures/environment.ts';
import { toyCell, toyRecord, toyResult } from '../fixtures/records.ts';

const later = { startedAt: '2026-02-01T00:00:00.000Z' };

it('keeps the latest of steps that were measured several times, and the median of the ceilings', () => {
  const ceilings = (flops: number) => ({
    matmulFlopsPerSecond: { float32: flops },
    copyBytesPerSecond: 1e11,
  });
  const records = [
    toyRecord({}, { ...later, result: toyResult(2), ceilings: ceilings(3e12) }),
    toyRecord({}, { ceilings: ceilings(1e12) }),
    toyRecord({ context: 32 }, { ceilings: ceilings(2e12) }),
    toyRecord({ mode: 'forward' }, { ceilings: null }),
  ];
  const machine = machineOf(records);
  expect(machine.steps.map(({ context, stepMs }) => [context, stepMs])).toEqual([
    [16, 20],
    [32, 10],
  ]);
  expect(machine.ceilings).toEqual(ceilings(2e12));
  expect(machine.measuredAt).toBe(later.startedAt);
  expect(machine.steps[0]).toMatchObject({
    size: toyCell.size,
    peakBytes: 2 ** 20,
    ranks: 1,
    reduction: 'none',
  });
});

it('leaves out steps that make activations again, or logits in chunks', () => {
  const savings = [{ recompute: 'block' }, { logits: 'chunked' }, { memoryBudget: '1GiB' }] as const;
  const records = savings.map((saving) => toyRecord({ ...saving, context: 64 }));
  expect(machineOf([toyRecord(), ...records]).steps.map(({ context }) => context)).toEqual([16]);
});

it('has steps whose sequences are divided, with the batch that their ranks have together', () => {
  const { peerAttention: _, peerExecution: __, ...cell } = toyCell;
  const parameters = { ...cell, mode: 'fsdp-context', worldSize: 2, optimizer: 'whole' };
  const rank: RankResult = {
    ...{ rank: 0, bucketBytes: [8], copiedBytes: 0, parameterCount: 1000, threads: 1, coldStartMs: 1 },
    times: { stepMs: [4], synchronizedMs: null, localMs: null, optimizerMs: [1], communicationMs: [2] },
    memory: { beforeStepBytes: 1, afterStepBytes: 2, peakBytes: 3 },
    ...{ profiledPass: { status: 'failed', error: 'none' }, peer: null },
  };
  const result = joinRanks([rank, { ...rank, rank: 1, memory: { ...rank.memory, peakBytes: 4 } }]);
  const { steps } = machineOf([toyRecord(), toyRecord({}, { benchmark: 'ddp', parameters, result })]);
  expect(steps[1]).toMatchObject({
    ...{ ranks: 2, batch: toyCell.batch, reduction: 'fsdp-context', computationMs: null, peakBytes: 4 },
  });
});

describe('steps of several ranks', () => {
  const stepOf = (cell: Partial<DdpCell>, times: Partial<RankResult['times']> = {}) => {
    const rank = { ...ofRank(0), times: { ...ofRank(0).times, ...times }, peer: null };
    const record = { ...ddpRecord(cell), result: joinRanks([rank, { ...rank, rank: 1 }]) };
    return machineOf([toyRecord(), record]).steps[1]!;
  };
  const whole = { optimizer: 'whole' } as const;

  it('have the computation of passes without communication, and of a whole optimizer', () => {
    expect(stepOf(whole)).toMatchObject({
      ...{ ranks: 2, sharing: 2, reduction: 'overlap', reductions: 2, stepMs: 40 },
      ...{ computationMs: 30 + 7, communicationMs: 10, exposedMs: 3 },
    });
    expect(stepOf({ optimizer: 'sharded' }).computationMs).toBeNull();
    // One rank alone has all of it, and reduces nothing.
    const alone = stepOf({ optimizer: 'sharded', worldSize: 1 });
    expect(alone).toMatchObject({ computationMs: 37, reduction: 'none', sharing: 1 });
    expect(stepOf(whole, { localMs: null })).toMatchObject({ computationMs: null, exposedMs: 0 });
    expect(stepOf(whole, { optimizerMs: null }).computationMs).toBeNull();
  });

  it('have added what their passes took longer than those beside them, and never less than nothing', () => {
    // 1, 15 and 10 ms; of the medians it would be 20 - 9.
    expect(stepOf(whole, { synchronizedMs: [10, 20, 60], localMs: [9, 5, 50] }).exposedMs).toBe(10);
    expect(stepOf(whole, { synchronizedMs: [10, 10, 10], localMs: [11, 11, 11] }).exposedMs).toBe(0);
  });
});

it('has the best of our flash attention under a causal mask, by head dimension and dtype', () => {
  const outcome = (ms: number): Outcome => ({
    status: 'ok',
    samplesMs: { forward: [ms], backward: [2 * ms] },
    peakBytes: null,
  });
  const timed: Timed[] = [
    { side: 'torch', attention: 'flash', outcome: outcome(0.5) },
    { side: 'ours', attention: 'plain', outcome: outcome(4) },
    { side: 'ours', attention: 'flash', outcome: outcome(1) },
  ];
  const records = [
    flashRecord({ sequence: 128 }, timed),
    flashRecord({}, timed),
    flashRecord({ sequence: 4096, mask: 'full' }, timed),
    flashRecord({ dtype: 'bfloat16' }, timed),
    // Without a backward pass.
    flashRecord({ sequence: 8192 }),
  ];
  // 1 ms forward of two heads of 16, half of the products.
  const rate = (sequence: number) => (4 * 2 * sequence ** 2 * 16) / 2 / 1e-3;
  expect(machineOf([toyRecord(), ...records]).attention).toMatchObject([
    {
      headDimension: 16,
      dtype: 'float32',
      forward: Number(rate(128).toPrecision(6)),
      backward: Number((1.25 * rate(128)).toPrecision(6)),
    },
    { headDimension: 16, dtype: 'bfloat16', forward: Number(rate(64).toPrecision(6)) },
  ]);
});

it('has our collectives, and none of PyTorch', () => {
  const { collectives } = machineOf([toyRecord(), collectiveRecord()]);
  expect(collectives).toEqual([{ op: 'allreduce', ranks: 4, bytes: 1e6, timeMs: 2 }]);
});

it("has the memory of a GPU, and without one the system's", () => {
  const { system, device } = toyEnvironment;
  expect(machineOf([toyRecord()]).memoryBytes).toBe(system.memoryBytes);
  const gpu = { ...device, type: 'cuda' as const, name: 'a GPU', properties: { memoryMiB: 3 } };
  const machine = machineOf([toyRecord({}, { environment: { ...toyEnvironment, device: gpu } })]);
  expect(machine).toMatchObject({ name: 'a GPU', memoryBytes: 3 * 2 ** 20 });
});

it('leaves out what is no training step', () => {
  expect(machineOf([toyRecord({ mode: 'forward-backward', context: 32 }), toyRecord()]).steps).toHaveLength(
    1,
  );
});

it('refuses records of several devices, of none that succeeded, without ceilings, and of another version', () => {
  const device = { ...toyEnvironment.device, type: 'cuda' as const, name: 'another' };
  const elsewhere = { environment: { ...toyEnvironment, device } };
  expect(() => machineOf([toyRecord(), toyRecord({}, elsewhere)])).toThrow('A plan is of one kind of device');
  expect(() => machineOf([toyRecord({}, { status: 'failed', result: null })])).toThrow('None of the records');
  expect(() => machineOf([toyRecord({}, { ceilings: null })])).toThrow('No record holds ceilings');
  expect(() => machineOf([toyRecord({}, { result: { deviceMs: 'soon' } })])).toThrow('is no record of e2e');
});
