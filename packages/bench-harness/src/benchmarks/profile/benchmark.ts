import { defineBenchmark } from '../define-benchmark.ts';
import { describeCell, expandCells } from '../e2e/parameters.ts';
import { interpretProfile } from './interpret.ts';
import {
  profileCell,
  profileParameters,
  type ProfileCell,
  type ProfileParameters,
  type ProfileSettings,
} from './parameters.ts';
import { profileReport } from './report/report.ts';
import { kernelTable } from './report/tables.ts';
import { profileResult } from './result.ts';

/** The kernels of a training step by name, by range and over time. */
export const profileBenchmark = defineBenchmark({
  name: 'profile',
  title: 'Kernel profile',
  parameters: profileParameters,
  cell: profileCell,
  result: profileResult,
  settings: ({ warmup, steps, seed, phase, range, peer }: ProfileParameters): ProfileSettings => ({
    warmup,
    steps,
    seed,
    phase,
    range,
    peer,
  }),
  expand: (parameters: ProfileParameters): ProfileCell[] => expandCells(parameters),
  describe: describeCell,
  async measure(cell: ProfileCell, context) {
    // Only the cell's own process opens a device.
    const { measureProfile } = await import('./measure.ts');
    return measureProfile(cell, context);
  },
  samplesMs: ({ profiledMs }) => profiledMs,
  toTable: (records) => kernelTable(records.map(interpretProfile)),
  toReport: profileReport,
});
