import { defineBenchmark } from '../define-benchmark.ts';
import { stepSweepOf } from '../e2e/parameters.ts';
import { memorySettings } from './parameters.ts';
import { detailedOf, forwardBeside, overheadFinding, peakFinding, savedFinding } from './report/findings.ts';
import { lead } from './report/lead.ts';
import { opByOpNotes, largestTable, liveTable, savedTable, sweepTable } from './report/tables.ts';
import { allocationPictures, allocationPlot, peakPlot } from './report/plots.ts';
import { recomputeFinding, recomputePlot, recomputeTable } from './report/recompute.ts';
import { memoryResult } from './result.ts';

/** Where the memory of a training step goes: one step recorded, allocation by allocation. */
export const memoryBenchmark = defineBenchmark({
  name: 'memory',
  title: 'Memory of a training step',
  ...stepSweepOf(memorySettings),
  result: memoryResult,
  samplesMs: ({ overhead }) => overhead.offMs,
  peakBytes: ({ peakAllocatedBytes }) => peakAllocatedBytes,
  table: sweepTable,
  overview: [opByOpNotes],
  lead,
  findings: [recomputeFinding, peakFinding, savedFinding, overheadFinding],
  pictures: allocationPictures,
  sections: [
    {
      id: 'memory',
      title: 'Memory',
      text: [
        'One step of each configuration was recorded after warm-up: every allocation and free of the device ' +
          'memory that tensors and workspaces use, with its op, range and calls. Times are those of the host, ' +
          'which queues the work.',
      ],
      blocks: [(cells) => [sweepTable(cells)], opByOpNotes, peakPlot],
    },
    (cells) => {
      const tables = recomputeTable(cells);
      if (tables.length === 0) return [];
      const text =
        'Each policy compared with the step that keeps all of its activations. Predicted is the peak of that step with what its blocks keep ' +
        'replaced by what those of the policy do: inputs of blocks, attention where that is kept, and all of the blocks that are ' +
        'made again together (Chen et al. 2016).';
      return [
        {
          id: 'recomputation',
          title: 'Recomputation',
          text: [text],
          blocks: [...recomputePlot(cells), ...tables],
        },
      ];
    },
    (cells) => {
      const detailed = detailedOf(cells);
      if (!detailed) return [];
      const forward = forwardBeside(cells, detailed);
      const blocks = [liveTable, largestTable, savedTable].flatMap((table) => table(detailed));
      return [
        {
          id: 'memory-over-a-step',
          title: 'Memory over a step',
          text: [`${detailed.name}.`],
          blocks: [
            ...(forward
              ? [
                  allocationPlot(
                    forward,
                    'allocations-over-a-forward-pass',
                    'Allocations over one forward pass',
                  ),
                ]
              : []),
            allocationPlot(detailed, 'allocations-over-a-step'),
            ...blocks,
          ],
        },
      ];
    },
  ],
});
