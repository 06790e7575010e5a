import { defineBenchmark } from '../define-benchmark.ts';
import {
  type DdpCell,
  type DdpParameters,
  type DdpSettings,
  ddpCell,
  ddpParameters,
  describeDdpCell,
  expandDdpCells,
} from './parameters.ts';
import { ddpReport, ddpTable } from './report.ts';
import { ddpResult } from './result.ts';

/** Data-parallel training steps: their time, their communication, how much of it overlap hides, memory by rank. */
export const ddpBenchmark = defineBenchmark({
  name: 'ddp',
  title: 'Data-parallel training',
  parameters: ddpParameters,
  cell: ddpCell,
  result: ddpResult,
  settings: ({ backend, bucketBytes, warmup, steps, seed, peer }: DdpParameters): DdpSettings => ({
    backend,
    bucketBytes,
    warmup,
    steps,
    seed,
    peer,
  }),
  expand: expandDdpCells,
  describe: describeDdpCell,
  async measure(cell: DdpCell, context) {
    // Only the cell's own process opens sockets.
    const { measureDdp } = await import('./measure.ts');
    return measureDdp(cell, context);
  },
  samplesMs: ({ times }) => times.stepMs,
  peakBytes: ({ memory }) => Math.max(...memory.map(({ peakBytes }) => peakBytes)),
  toTable: ddpTable,
  toReport: ddpReport,
});
