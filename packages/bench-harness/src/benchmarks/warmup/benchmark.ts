import { defineBenchmark } from '../define-benchmark.ts';
import { e2eResult } from '../e2e/result.ts';
import {
  expandWarmups,
  warmupCellParameters,
  warmupParameters,
  type WarmupParameters,
  type WarmupSettings,
} from './parameters.ts';
import { lead, stepPlots, warmupFindings, warmupTable } from './report.ts';

/** How much the steps before those that count matter: each number of them in a process of its own. */
export const warmupBenchmark = defineBenchmark({
  name: 'warmup',
  title: 'Warm-up',
  parameters: warmupParameters,
  cell: warmupCellParameters,
  result: e2eResult,
  settings: ({ steps, seed }: WarmupParameters): WarmupSettings => ({ steps, seed }),
  expand: expandWarmups,
  samplesMs: ({ deviceMs }) => deviceMs,
  peakBytes: ({ memory }) => memory.peakAllocatedBytes,
  cost: ({ work }, { dtype }) => ({ phases: Object.values(work), dtype }),
  table: warmupTable,
  lead,
  findings: [warmupFindings],
  sections: [
    {
      id: 'warm-up-study',
      title: 'Warm-up',
      text: ['Each row ran in a process of its own, in which no step had run before.'],
      blocks: [(cells) => [warmupTable(cells)], stepPlots],
    },
  ],
});
