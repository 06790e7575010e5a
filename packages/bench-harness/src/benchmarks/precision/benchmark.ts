import { defineBenchmark } from '../define-benchmark.ts';
import { describeCell, sizeName } from '../e2e/parameters.ts';
import {
  expandPrecisionCells,
  lossWords,
  precisionCell,
  precisionParameters,
  precisionResult,
  type PrecisionCell,
  type PrecisionParameters,
  type PrecisionSettings,
} from './parameters.ts';
import { precisionReport } from './report/report.ts';
import { findingsTable } from './report/tables.ts';

/** Mixed precision: what it rounds, where, what it does to the loss, and what it saves. */
export const precisionBenchmark = defineBenchmark({
  name: 'precision',
  title: 'Mixed precision',
  parameters: precisionParameters,
  cell: precisionCell,
  result: precisionResult,
  settings: ({ warmup, steps, seed, peer, lossSteps }: PrecisionParameters): PrecisionSettings => ({
    warmup,
    steps,
    seed,
    peer,
    lossSteps,
  }),
  expand: expandPrecisionCells,
  describe: describePrecisionCell,
  async measure(cell: PrecisionCell, context) {
    // Only the cell's own process opens a device.
    const { measurePrecision } = await import('./measure.ts');
    return measurePrecision(cell, context);
  },
  samplesMs: (result) => (result.study === 'speed' ? result.deviceMs : []),
  peakBytes: (result) => (result.study === 'speed' ? result.memory.peakAllocatedBytes : null),
  toTable: findingsTable,
  toReport: precisionReport,
});

function describePrecisionCell(cell: PrecisionCell): string {
  switch (cell.study) {
    case 'accumulation':
      return 'accumulation';
    case 'dtypes':
      return `dtypes of a toy model · ${cell.dtype}`;
    case 'loss':
      return ['loss curve', ...lossWords(cell)].join(' · ');
    case 'accuracy':
      return `accuracy · ${sizeName(cell)} · context ${cell.context} · batch ${cell.batch} · ${cell.dtype}`;
    case 'speed':
      return describeCell(cell);
  }
}
