import { countParameters, presets } from '@roofline/transformer';
import { describe, expect, it } from 'vitest';
import { fullySharded } from '../../../src/plan/layout.ts';
import { memoryOf as plannedMemory } from '../../../src/plan/memory.ts';
import type { DdpCell } from '../../../src/benchmarks/ddp/parameters.ts';
import { modelOf } from '../../../src/benchmarks/ddp/run-rank.ts';
import { RankTraining } from '../../../src/benchmarks/ddp/rank-training.ts';
import type { RankResult } from '../../../src/benchmarks/ddp/result.ts';
import { planningRank } from '../../fixtures/planning-ranks.ts';

const gibibyte = 2 ** 30;

/** What a rank holds, on a GPU that counts it and does nothing else. */
async function memoryOf(
  size: keyof typeof presets,
  changes: Partial<DdpCell>,
): Promise<RankResult['memory']> {
  const { contextLength: _, ...shape } = presets[size];
  const cell: DdpCell = {
    ...{ size, shape, context: 512, batch: 4, dtype: 'bfloat16', attention: 'flash', execution: 'compiled' },
    ...{ recompute: 'none', logits: 'whole', memoryBudget: 'none', optimizer: 'whole', worldSize: 2 },
    mode: 'fsdp',
    ...changes,
  };
  const settings = {
    backend: 'nccl',
    bucketBytes: 25 * 2 ** 20,
    warmup: 0,
    steps: 1,
    seed: 0,
    peer: null,
  } as const;
  const { device, group } = planningRank(cell.worldSize);
  const trained = await modelOf(cell)(cell, settings, device, group);
  const training = new RankTraining(trained, cell, settings, device, group);
  const { memory } = training.firstSteps();
  training.dispose();
  return memory;
}

/** The peak by the formulas of `roofline plan`. */
function planned(size: keyof typeof presets, changes: Partial<Parameters<typeof plannedMemory>[1]>): number {
  const setting: Parameters<typeof plannedMemory>[1] = {
    ...{ shape: presets[size], context: 512, batch: 4, recompute: 'none' },
    dtype: 'bfloat16',
    attention: 'flash',
    execution: 'compiled',
    ...changes,
  };
  return plannedMemory(fullySharded(2), setting, false).peak;
}

describe('8 billion parameters on two GPUs, 32,768 tokens each', () => {
  const big = { context: 32_768, batch: 1, logits: 'chunked' } as const;

  it('take 69 GiB, of which masters and moments are 45', async () => {
    const held = (12 * countParameters({ ...presets['8b'], contextLength: 32_768 })) / 2;
    expect(held / gibibyte).toBeCloseTo(45.4, 1);
    const kept = await memoryOf('8b', { ...big, recompute: 'attention-kept', memoryBudget: '69GiB' });
    expect(kept.builtBytes! / (held / 3)).toBeCloseTo(1, 2);
    expect(kept.peakBytes / gibibyte).toBeLessThanOrEqual(69);
    const byFormula = planned('8b', { ...big, recompute: 'attention-kept' });
    expect(Math.abs(kept.peakBytes / byFormula - 1)).toBeLessThan(0.03);
  });

  it('take 75 GiB with a sequence of 65,536 between them', async () => {
    const changes = { ...big, context: 65_536, mode: 'fsdp-context', recompute: 'attention-kept' } as const;
    const { peakBytes } = await memoryOf('8b', changes);
    expect(peakBytes / gibibyte).toBeGreaterThan(60);
    expect(peakBytes / gibibyte).toBeLessThanOrEqual(75);
  });
});

it('half of the parameters, gradients and moments are on each of two ranks, within 3 %', async () => {
  const parameters = countParameters({ ...presets['2.7b'], contextLength: 512 });
  const { builtBytes, beforeStepBytes, afterStepBytes, peakBytes } = await memoryOf('2.7b', {});
  expect(Math.abs(peakBytes / planned('2.7b', {}) - 1)).toBeLessThan(0.03);
  expect(builtBytes! / (4 * parameters)).toBeCloseTo(1 / 2, 2);
  expect(beforeStepBytes / (8 * parameters)).toBeCloseTo(1 / 2, 2);
  expect(Math.abs((2 * (afterStepBytes - beforeStepBytes)) / (8 * parameters) - 1)).toBeLessThan(0.03);
});
