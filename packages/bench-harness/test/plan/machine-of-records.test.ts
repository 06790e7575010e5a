import { expect, it } from 'vitest';
import { joinRanks } from '../../src/benchmarks/ddp/measure.ts';
import type { RankResult } from '../../src/benchmarks/ddp/result.ts';
import { machineOf } from '../../src/plan/machine-of-records.ts';
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

it('refuses records of several devices, of none that succeeded, without ceilings, and of another version', () => {
  const device = { ...toyEnvironment.device, type: 'cuda' as const, name: 'another' };
  const elsewhere = { environment: { ...toyEnvironment, device } };
  expect(() => machineOf([toyRecord(), toyRecord({}, elsewhere)])).toThrow('A plan is of one kind of device');
  expect(() => machineOf([toyRecord({}, { status: 'failed', result: null })])).toThrow('None of the records');
  expect(() => machineOf([toyRecord({}, { ceilings: null })])).toThrow('No record holds ceilings');
  expect(() => machineOf([toyRecord({}, { result: { deviceMs: 'soon' } })])).toThrow('is no record of e2e');
});
