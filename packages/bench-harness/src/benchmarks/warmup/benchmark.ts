import { defineBenchmark } from '../define-benchmark.ts';
import { describeCell } from '../e2e/parameters.ts';
import { e2eResult } from '../e2e/result.ts';
import { warmupReport, warmupTable } from './report.ts';
import {
  expandWarmups,
  warmupCell,
  warmupParameters,
  type WarmupCell,
  type WarmupParameters,
  type WarmupSettings,
} from './parameters.ts';

/** How much the steps before those that count matter: each number of them in a process of its own. */
export const warmupBenchmark = defineBenchmark({
  name: 'warmup',
  title: 'Warm-up',
  parameters: warmupParameters,
  cell: warmupCell,
  result: e2eResult,
  settings: ({ steps, seed }: WarmupParameters): WarmupSettings => ({ steps, seed }),
  expand: expandWarmups,
  describe: (cell: WarmupCell) => `${describeCell(cell)} · warm-up ${cell.warmup}`,
  async measure({ warmup, ...cell }: WarmupCell, context) {
    // Only the cell's own process opens a device.
    const { measureE2e } = await import('../e2e/measure.ts');
    return measureE2e(cell, { ...context, settings: { ...context.settings, warmup, peer: null } });
  },
  samplesMs: ({ deviceMs }) => deviceMs,
  peakBytes: ({ memory }) => memory.peakAllocatedBytes,
  cost: ({ work }, { dtype }) => ({ phases: Object.values(work), dtype }),
  toTable: warmupTable,
  toReport: warmupReport,
});
