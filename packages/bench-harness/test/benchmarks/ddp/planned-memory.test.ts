import { countParameters, presets } from '@roofline/transformer';
import { describe, expect, it } from 'vitest';
import type { DdpCell } from '../../../src/benchmarks/ddp/parameters.ts';
import { rankModelOf } from '../../../src/benchmarks/ddp/rank-model.ts';
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
  const trained = await rankModelOf(cell, settings, device, group);
  const training = new RankTraining(trained, cell, settings, device, group);
  const { memory } = training.firstSteps();
  training.dispose();
  return memory;
}

describe('8 billion parameters on two GPUs, 32,768 tokens each', () => {
  const big = { context: 32_768, batch: 1, logits: 'chunked' } as const;

  it('take 69 GiB, of which masters and moments are 45', { timeout: 60_000 }, async () => {
    const held = (12 * countParameters({ ...presets['8b'], contextLength: 32_768 })) / 2;
    expect(held / gibibyte).toBeCloseTo(45.4, 1);
    const kept = await memoryOf('8b', { ...big, recompute: 'attention-kept', memoryBudget: '69GiB' });
    expect(kept.builtBytes! / (held / 3)).toBeCloseTo(1, 2);
    expect(kept.peakBytes / gibibyte).toBeGreaterThan(65);
    expect(kept.peakBytes / gibibyte).toBeLessThanOrEqual(69);
  });
});

it(
  'half of the parameters, gradients and moments are on each of two ranks, within 3 %',
  { timeout: 60_000 },
  async () => {
    const parameters = countParameters({ ...presets['2.7b'], contextLength: 512 });
    const { builtBytes, beforeStepBytes, afterStepBytes } = await memoryOf('2.7b', {});
    expect(builtBytes! / (4 * parameters)).toBeCloseTo(1 / 2, 2);
    expect(beforeStepBytes / (8 * parameters)).toBeCloseTo(1 / 2, 2);
    expect(Math.abs((2 * (afterStepBytes - beforeStepBytes)) / (8 * parameters) - 1)).toBeLessThan(0.03);
  },
);
