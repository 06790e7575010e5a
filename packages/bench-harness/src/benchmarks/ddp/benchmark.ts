import { defineBenchmark } from '../define-benchmark.ts';
import { ddpSweep } from './parameters.ts';
import { method, stepFindings, timePlot } from './report/findings.ts';
import { lead } from './report/lead.ts';
import { ddpTable, rankTable } from './report/tables.ts';
import { passTimelines } from './report/timelines.ts';
import { volumeTable } from './report/volume.ts';
import { ddpResult } from './result.ts';

/** Data-parallel training steps: their time, their communication, how much of it overlap hides, memory by rank. */
export const ddpBenchmark = defineBenchmark({
  name: 'ddp',
  title: 'Data-parallel training',
  ...ddpSweep,
  result: ddpResult,
  samplesMs: ({ times }) => times.stepMs,
  peakBytes: ({ memory }) => Math.max(...memory.map(({ peakBytes }) => peakBytes)),
  table: ddpTable,
  overview: [rankTable],
  lead,
  findings: [stepFindings],
  sections: [
    { id: 'ddp-results', title: 'Steps', text: method, blocks: [(cells) => [ddpTable(cells)], timePlot] },
    { id: 'ddp-passes', title: 'Passes over time', blocks: [passTimelines] },
    { id: 'ddp-sent', title: 'Volume', blocks: [volumeTable] },
    { id: 'ddp-ranks', title: 'Memory', blocks: [rankTable] },
  ],
});
