import { defineBenchmark } from '../benchmark.ts';
import { overheadReport, overheadTable } from '../report/overhead-report.ts';
import {
  overheadParameters,
  overheadResult,
  type OverheadCell,
  type OverheadParameters,
  type OverheadSettings,
} from './parameters.ts';

/** What an eager op costs the host, and how long the first one takes. */
export const overheadBenchmark = defineBenchmark({
  name: 'overhead',
  title: 'Host overhead of eager ops',
  parameters: overheadParameters,
  settings: ({ calls, repeats }: OverheadParameters): OverheadSettings => ({ calls, repeats }),
  expand: ({ ops }): OverheadCell[] => ops.map((op) => ({ op })),
  describe: ({ op }) => op,
  async measure(cell: OverheadCell, context) {
    // Only the cell's own process opens a device.
    const { measureOverhead } = await import('./measure.ts');
    return measureOverhead(cell, context);
  },
  samplesMs: (record) => overheadResult.parse(record.result).hostUs.map((us) => us / 1000),
  toTable: overheadTable,
  toReport: overheadReport,
});
