import { attentionWork } from '../../attention/work.ts';
import { defineBenchmark } from '../define-benchmark.ts';
import {
  attentionCell,
  attentionParameters,
  describeAttentionCell,
  expandAttentionCells,
  type AttentionCell,
  type AttentionParameters,
  type AttentionSettings,
} from './parameters.ts';
import { interpretAttention } from './report/interpret.ts';
import { attentionReport } from './report/report.ts';
import { attentionTable } from './report/tables.ts';
import { attentionResult, bothPasses } from './result.ts';

/** Causal attention alone, without heads: its time and its memory by sequence and head dimension. */
export const attentionBenchmark = defineBenchmark({
  name: 'attention',
  title: 'Attention',
  parameters: attentionParameters,
  cell: attentionCell,
  result: attentionResult,
  settings: ({ warmup, steps, seed }: AttentionParameters): AttentionSettings => ({ warmup, steps, seed }),
  expand: expandAttentionCells,
  describe: describeAttentionCell,
  flashAttention: ({ attention, batch, headDimension, sequence, dtype }) =>
    attention === 'flash' ? { batch, heads: 1, headDimension, sequence, dtype } : null,
  async measure(cell: AttentionCell, context) {
    // Only the cell's own process opens a device.
    const { measureAttention } = await import('./measure.ts');
    return measureAttention(cell, context);
  },
  samplesMs: (result) => bothPasses(result).deviceMs,
  peakBytes: ({ memory }) => memory.peakAllocatedBytes,
  cost: (_, cell) => ({ phases: attentionWork({ ...cell, heads: 1 }, 'both'), dtype: cell.dtype }),
  toTable: (records) => attentionTable(records.map(interpretAttention)),
  toReport: attentionReport,
});
