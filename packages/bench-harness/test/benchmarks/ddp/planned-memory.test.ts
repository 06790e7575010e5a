import { countParameters, presets } from '@roofline/transformer';
import { describe, expect, it } from 'vitest';
import { contextRanksOf, type DdpCell } from '../../../src/benchmarks/ddp/parameters.ts';
import type { RankResult } from '../../../src/benchmarks/ddp/result.ts';
import { fullySharded, sequencesDivided } from '../../../src/plan/layout.ts';
import { memoryOf as plannedMemory } from '../../../src/plan/memory.ts';
import { cellOf, plannedStep, type Size } from '../../fixtures/planned-step.ts';

const gibibyte = 2 ** 30;

/** What a rank holds. */
async function memoryOf(size: Size, changes: Partial<DdpCell>, rank = 0): Promise<RankResult['memory']> {
  return (await plannedStep(cellOf(size, changes), rank)).memory;
}

/** The peak by the formulas of `roofline plan`. */
function planned(size: Size, changes: Partial<DdpCell>): number {
  const cell = cellOf(size, changes);
  const context = contextRanksOf(cell);
  const layout = context > 1 ? sequencesDivided(context) : fullySharded(cell.worldSize);
  return plannedMemory(layout, { ...cell, batch: cell.batch / context }, false).peak;
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

  it.each([
    ['block', 61.8],
    ['attention-kept', 70.2],
  ])(
    'take with a sequence of 65,536 between them and the policy %s %d GiB, as planned within three percent',
    async (recompute, gibibytes) => {
      const changes = { ...big, context: 65_536, mode: 'fsdp-context', recompute } as const;
      const { peakBytes } = await memoryOf('8b', changes, 1);
      expect(peakBytes / gibibyte).toBeCloseTo(gibibytes, 1);
      expect(Math.abs(peakBytes / planned('8b', changes) - 1)).toBeLessThan(0.03);
    },
  );
});

it('half of the parameters, gradients and moments are on each of two ranks, within 3 %', async () => {
  const parameters = countParameters({ ...presets['2.7b'], contextLength: 512 });
  const { builtBytes, beforeStepBytes, afterStepBytes, peakBytes } = await memoryOf('2.7b', {});
  expect(Math.abs(peakBytes / planned('2.7b', {}) - 1)).toBeLessThan(0.03);
  expect(builtBytes! / (4 * parameters)).toBeCloseTo(1 / 2, 2);
  expect(beforeStepBytes / (8 * parameters)).toBeCloseTo(1 / 2, 2);
  expect(Math.abs((2 * (afterStepBytes - beforeStepBytes)) / (8 * parameters) - 1)).toBeLessThan(0.03);
});

it.each([
  ['2.7b', { context: 8192, batch: 1 }],
  ['2.7b', { context: 8192, batch: 1, recompute: 'block', logits: 'chunked' }],
  ['medium', { context: 2048, worldSize: 4 }],
  ['medium', { context: 2048, worldSize: 4, shape: { ...cellOf('medium').shape, keyValueHeads: 4 } }],
  ['medium', { context: 4096, batch: 1, attention: 'plain' }],
  ['medium', { context: 4096, batch: 1, attention: 'plain', worldSize: 4 }],
  ['small', { context: 2048 }],
] as const)(
  'sequences that are divided take what is planned within three percent: %s, %j',
  async (size, changes) => {
    const cell = { ...changes, mode: 'fsdp-context' } as const;
    const { peakBytes } = await memoryOf(size, cell, cellOf(size, cell).worldSize - 1);
    expect(Math.abs(peakBytes / planned(size, cell) - 1)).toBeLessThan(0.03);
  },
);
