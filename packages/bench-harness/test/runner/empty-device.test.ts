import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import { full } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { timeAttention } from '../../src/benchmarks/attention/measure.ts';
import { e2eCell } from '../../src/benchmarks/e2e/parameters.ts';
import { createWorkload } from '../../src/benchmarks/e2e/workload.ts';
import { timeContenders } from '../../src/benchmarks/flash/measure.ts';
import { isEmptied, leavesDeviceEmpty } from '../../src/runner/empty-device.ts';

const shape = { batch: 1, headDimension: 16, sequence: 16, dtype: 'float32' as const };

describe('a GPU that the next cell finds as a new process would', () => {
  const device = openEmulatedDevice();

  it.each([
    ['eager', 'forward-backward'],
    ['eager', 'train-step'],
    ['compiled', 'forward-backward'],
    ['compiled', 'train-step'],
  ] as const)('is left by steps: %s, %s', (execution, mode) => {
    const model = { vocabularySize: 32, modelDimension: 16, feedForwardDimension: 16, layers: 1, heads: 2 };
    const cell = e2eCell.parse({
      ...{ size: 'tiny', shape: model, dtype: 'float32', batch: 1, context: 8, attention: 'plain' },
      ...{ execution, mode },
    });
    const workload = createWorkload(cell, device, 0);
    workload.compile();
    for (let step = 0; step < 2; step++) workload.step((_, work) => work());
    expect(isEmptied(device)).toBe(false);
    workload.dispose();
    expect(isEmptied(device)).toBe(true);
  });

  it.each(['eager', 'compiled'] as const)('is left by the passes of attention, %s', async (execution) => {
    const cell = { ...shape, attention: 'plain' as const, execution };
    await timeAttention(device, cell, { warmup: 1, steps: 1, seed: 0 }, () => {});
    expect(isEmptied(device)).toBe(true);
  });

  it('is left by attentions that take turns', async () => {
    const settings = {
      ...{ attentions: ['plain' as const], peerAttentions: [], passes: ['both' as const], peer: null },
      ...{ warmupMs: 0.1, repeatMs: 0.1, rounds: 1, seed: 0 },
    };
    await timeContenders(device, { ...shape, heads: 1, mask: 'causal' }, settings, () => {}, 1024);
    expect(isEmptied(device)).toBe(true);
  });

  it('is not what holds a tensor', () => {
    using held = full([4], 1, { device });
    expect([held.size, isEmptied(device)]).toEqual([4, false]);
  });
});

it('asks nothing of the CPU', async () => {
  expect(await leavesDeviceEmpty('cpu')).toBe(true);
});
