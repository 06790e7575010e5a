import type { z } from 'zod';
import { attentionWork } from '../../attention/work.ts';
import { sweepOf } from '../../parameters/sweep.ts';
import { defineBenchmark } from '../define-benchmark.ts';
import { attentionParameters, attentionPasses } from './parameters.ts';
import { besidePlainFindings, compiledFindings, roofFinding, spreadOfPasses } from './report/findings.ts';
import { lead } from './report/lead.ts';
import { besideTorchFindings, besideTorchTable, torchNotes } from './report/beside-torch.ts';
import { memoryPlots, timePlots } from './report/plots.ts';
import { attentionTable, compiledTable, memoryTable } from './report/tables.ts';
import { attentionResult, bothPasses } from './result.ts';

const sweep = sweepOf({
  cell: attentionParameters,
  settings: attentionPasses,
  // Short sequences first; the attentions of one shape are adjacent.
  nested: ['dtype', 'batch', 'sequence', 'headDimension', 'attention', 'execution'],
});

/** Causal attention alone, without heads: its time and its memory by sequence and head dimension. */
export const attentionBenchmark = defineBenchmark({
  name: 'attention',
  title: 'Attention',
  ...sweep,
  settings: (parameters: z.output<typeof sweep.parameters>) => {
    const { peer, ...own } = sweep.settings(parameters);
    return { ...own, ...(peer && { peer }) };
  },
  result: attentionResult,
  flashAttention: ({ attention, batch, headDimension, sequence, dtype }) =>
    attention === 'flash' ? { batch, heads: 1, headDimension, sequence, dtype } : null,
  sharesProcess: () => true,
  samplesMs: (result) => bothPasses(result).deviceMs,
  peakBytes: ({ memory }) => memory.peakAllocatedBytes,
  cost: (_, cell) => ({ phases: attentionWork({ ...cell, heads: 1 }, 'both'), dtype: cell.dtype }),
  table: attentionTable,
  overview: [torchNotes, compiledTable, besideTorchTable, memoryTable],
  lead,
  findings: [roofFinding, besidePlainFindings, compiledFindings, besideTorchFindings],
  sections: [
    {
      id: 'times',
      title: 'Times',
      text: [
        'Each pass begins and ends with an idle device. The work that the roof is calculated of is 2 · batch · ' +
          'sequence² · d FLOPs forward (half of what attention without a mask takes) and 2.5 times that backward.',
      ],
      blocks: [
        (cells) => [attentionTable(cells)],
        spreadOfPasses,
        torchNotes,
        compiledTable,
        besideTorchTable,
        timePlots,
      ],
    },
    {
      id: 'memory',
      title: 'Memory',
      text: [
        'With T = batch · sequence · d numbers in a tensor and S = batch · sequence² in the scores: plain attention ' +
          'holds 5 T + S before backward and 6 T + 3 S at most; flash 5 T and at most 8 T, with one float32 number a ' +
          'row, three in float32; tiled two a row.',
      ],
      blocks: [memoryTable, memoryPlots],
    },
  ],
});
