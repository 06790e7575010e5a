import { defineBenchmark } from '../define-benchmark.ts';
import { e2eResult } from '../e2e/result.ts';
import { warmupSweep } from './parameters.ts';
import { lead, stepPlots, warmupFindings, warmupTable } from './report.ts';

/** How much the steps before those that count matter: each number of them in a process of its own. */
export const warmupBenchmark = defineBenchmark({
  name: 'warmup',
  title: 'Warm-up',
  ...warmupSweep,
  result: e2eResult,
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
