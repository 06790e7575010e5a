import { expect, it } from 'vitest';
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

it('refuses records of several devices, of none that succeeded, without ceilings, and of another version', () => {
  const device = { ...toyEnvironment.device, type: 'cuda' as const, name: 'another' };
  const elsewhere = { environment: { ...toyEnvironment, device } };
  expect(() => machineOf([toyRecord(), toyRecord({}, elsewhere)])).toThrow('A plan is of one kind of device');
  expect(() => machineOf([toyRecord({}, { status: 'failed', result: null })])).toThrow('None of the records');
  expect(() => machineOf([toyRecord({}, { ceilings: null })])).toThrow('No record holds ceilings');
  expect(() => machineOf([toyRecord({}, { result: { deviceMs: 'soon' } })])).toThrow('is no record of e2e');
});
