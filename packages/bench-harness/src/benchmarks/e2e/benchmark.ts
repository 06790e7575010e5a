import { defineBenchmark } from '../define-benchmark.ts';
import { e2eReport } from './report/report.ts';
import { interpretRecord } from './report/interpret.ts';
import { stepTable } from './report/tables.ts';
import {
  describeCell,
  e2eCell,
  e2eParameters,
  expandCells,
  type E2eCell,
  type E2eParameters,
  type E2eSettings,
} from './parameters.ts';
import { e2eResult } from './result.ts';

/** Forward, backward and optimizer step of a Transformer language model, end to end. */
export const e2eBenchmark = defineBenchmark({
  name: 'e2e',
  title: 'Transformer training, end to end',
  parameters: e2eParameters,
  cell: e2eCell,
  result: e2eResult,
  settings: ({ warmup, steps, seed, peer, executions = ['eager'] }: E2eParameters): E2eSettings => ({
    ...{ warmup, steps, seed, peer },
    ...(executions.length > 1 && executions.includes('eager') && { sweepsEager: true as const }),
  }),
  expand: expandCells,
  describe: describeCell,
  async measure(cell: E2eCell, context) {
    // Only the cell's own process opens a device.
    const { measureE2e } = await import('./measure.ts');
    return measureE2e(cell, context);
  },
  samplesMs: ({ deviceMs }) => deviceMs,
  peakBytes: ({ memory }) => memory.peakAllocatedBytes,
  cost: ({ work }, { dtype }) => ({ phases: Object.values(work), dtype }),
  toTable: (records) => stepTable(records.map(interpretRecord)),
  toReport: e2eReport,
});
