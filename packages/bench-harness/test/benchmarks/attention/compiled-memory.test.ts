import { openPlanningDevice } from '@roofline/tensor-core/testing';
import { describe, expect, it } from 'vitest';
import { timeAttention } from '../../../src/benchmarks/attention/measure.ts';
import { attentionCell } from '../../../src/benchmarks/attention/parameters.ts';

const shapes = [
  [16, 256],
  [64, 256],
  [128, 1024],
  [128, 16384],
] as const;

describe('the memory of attention in bfloat16', () => {
  it.each(
    shapes.flatMap(([headDimension, sequence]) =>
      (['plain', 'flash'] as const).map((attention) => ({ headDimension, sequence, attention })),
    ),
  )(
    'is compiled at most what it is eager: $attention, head dimension $headDimension, $sequence positions',
    async (shape) => {
      const [eager, compiled] = await Promise.all(
        (['eager', 'compiled'] as const).map(async (execution) => {
          const cell = attentionCell.parse({ ...shape, batch: 8, dtype: 'bfloat16', execution });
          const settings = { warmup: 2, steps: 2, seed: 0 };
          return (await timeAttention(openPlanningDevice(), cell, settings, () => {})).memory;
        }),
      );
      expect(compiled!.peakForwardBytes / eager!.peakForwardBytes).toBeLessThanOrEqual(1);
      expect(compiled!.peakAllocatedBytes / eager!.peakAllocatedBytes).toBeLessThanOrEqual(1);
    },
  );
});
