import { type Device, device } from '@roofline/tensor-core';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import { describe, expect, it } from 'vitest';
import { attentionKinds } from '../../../src/attention/kinds.ts';
import { timeAttention } from '../../../src/benchmarks/attention/measure.ts';
import { memoryNeed } from '../../../src/benchmarks/attention/memory-formula.ts';
import type { AttentionCell } from '../../../src/benchmarks/attention/parameters.ts';

const settings = { warmup: 1, steps: 3, seed: 0 };
const shape = { batch: 2, headDimension: 16, sequence: 64, execution: 'eager' } as const;

// This file is alone in a process: what other tests have dropped would be freed while memory is measured.

/** What was measured, without what others held. */
async function measure(where: Device, cell: AttentionCell) {
  const heldBytes = where.allocatedBytes;
  const told: unknown[][] = [];
  const progress = (...words: unknown[]) => void told.push(words);
  const result = await timeAttention(where, cell, settings, progress);
  const { memory } = result;
  return {
    ...result,
    told,
    beforeBackwardBytes: memory.beforeBackwardBytes! - heldBytes,
    peakBytes: memory.peakAllocatedBytes - heldBytes,
  };
}

describe.each(attentionKinds)('%s attention on the CPU', (attention) => {
  it.each([
    ['float32', 64],
    ['bfloat16', 64],
    // Scores that are smaller than two tensors.
    ['float32', 24],
    ['bfloat16', 24],
    ['float32', 8],
  ] as const)('needs in %s at sequence %i the memory of the formula', async (dtype, sequence) => {
    const cell = { ...shape, attention, dtype, sequence };
    const { forward, backward, told, ...measured } = await measure(device('cpu'), cell);
    for (const samples of [forward.deviceMs, forward.wallMs, backward!.deviceMs, backward!.wallMs]) {
      expect(samples).toHaveLength(settings.steps);
      expect(Math.min(...samples)).toBeGreaterThan(0);
    }
    expect(told.map(([done, total, what]) => [done, total, what]).at(-1)).toEqual([6, 6, 'passes']);
    expect(told.slice(0, 2).map(([, , what]) => what)).toEqual(['warm-up', 'passes']);

    const need = memoryNeed(cell);
    expect(measured.beforeBackwardBytes).toBe(need.beforeBackwardBytes);
    expect(measured.peakBytes).toBeGreaterThan(need.beforeBackwardBytes);
    // In addition to the formula there may be one number a row, of the gradients' own statistics.
    const rowBytes = cell.batch * cell.sequence * 4;
    if (need.peakBytes !== null) {
      expect(measured.peakBytes - need.peakBytes).toBeGreaterThanOrEqual(0);
      expect(measured.peakBytes - need.peakBytes).toBeLessThanOrEqual(rowBytes);
    }
  });
});

it.each(attentionKinds)(
  'times programs of %s attention: of the forward pass, and of both',
  async (attention) => {
    const cell = { ...shape, attention, execution: 'compiled', dtype: 'float32' } as const;
    const measured = await measure(device('cpu'), cell);
    const { forward, backward, both, compilation, memory, told, beforeBackwardBytes } = measured;
    expect([forward.deviceMs, both!.deviceMs].map(({ length }) => length)).toEqual([3, 3]);
    expect(backward).toBeNull();
    const { beforeBackwardBytes: byFormula, tensorBytes } = memoryNeed(cell);
    const outputBytes = tensorBytes / 5;
    // Flash's backward pass reads the output; that of plain attention does not, and nobody else has it.
    expect(beforeBackwardBytes).toBe(byFormula - (attention === 'plain' ? outputBytes : 0));
    expect(memory.peakAllocatedBytes).toBeGreaterThan(memory.peakForwardBytes);
    for (const { calls, durationMs } of [compilation!.forward, compilation!.both]) {
      expect(calls).toBeGreaterThanOrEqual(2);
      expect(durationMs).toBeGreaterThan(0);
    }
    expect(told.at(-1)).toEqual([3, 3, 'forward and backward']);
  },
);

it.each([
  ['eager', ['forward 2', 'forward 1', 'backward 2', 'backward 1']],
  ['compiled', ['forward 2', 'forward 1', 'backward 2', 'backward 1']],
] as const)('takes turns with a rival: %s', async (execution, expected) => {
  const turns: string[] = [];
  const rival = { time: async (pass: string, count: number) => void turns.push(`${pass} ${count}`) };
  const cell = { ...shape, attention: 'plain' as const, dtype: 'float32' as const, execution };
  const { forward } = await timeAttention(device('cpu'), cell, settings, () => {}, rival);
  expect(turns).toEqual(expected);
  expect(forward.deviceMs).toHaveLength(settings.steps);
});

it.skipIf(!hostCompilerVersion())('needs the same memory on the emulated GPU', async () => {
  const cell: AttentionCell = { ...shape, attention: 'flash', dtype: 'float32' };
  const { beforeBackwardBytes } = await measure(openEmulatedDevice(), cell);
  expect(beforeBackwardBytes).toBe(memoryNeed(cell).beforeBackwardBytes);
});

it('keeps a square for plain attention, and a linear amount for the others', () => {
  const kept = (attention: AttentionCell['attention'], sequence: number) =>
    memoryNeed({ ...shape, attention, sequence, dtype: 'bfloat16' }).keptBytes;
  expect(kept('plain', 128) / kept('plain', 64)).toBe(4);
  expect(kept('flash', 128) / kept('flash', 64)).toBe(2);
  expect(kept('tiled', 128) / kept('tiled', 64)).toBe(2);
});
