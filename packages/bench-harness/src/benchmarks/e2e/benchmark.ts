import type { z } from 'zod';
import { defineBenchmark } from '../define-benchmark.ts';
import { spreadOfTimes } from '../present.ts';
import { e2eSweep } from './parameters.ts';
import { memoryFinding, peerNotes, precisionFindings, ratioFinding, roofFinding } from './report/findings.ts';
import { lead, peerCharts, question } from './report/lead.ts';
import { stepPlots } from './report/plots.ts';
import { phaseRooflines } from './report/roofline.ts';
import { compiledTable, peerTable, phaseTable, stepTable, stepTimes } from './report/tables.ts';
import { e2eResult } from './result.ts';

/** Forward, backward and optimizer step of a Transformer language model, end to end. */
export const e2eBenchmark = defineBenchmark({
  name: 'e2e',
  title: 'Transformer training, end to end',
  ...e2eSweep,
  result: e2eResult,
  settings: (parameters: z.output<typeof e2eSweep.parameters>) => ({
    ...e2eSweep.settings(parameters),
    ...(parameters.execution.length > 1 &&
      parameters.execution.includes('eager') && { sweepsEager: true as const }),
  }),
  sharesProcess: (_, { peer }) => peer === null,
  samplesMs: ({ deviceMs }) => deviceMs,
  peakBytes: ({ memory }) => memory.peakAllocatedBytes,
  cost: ({ work }, { dtype }) => ({ phases: Object.values(work), dtype }),
  table: stepTable,
  overview: [peerNotes],
  findings: [ratioFinding, roofFinding, memoryFinding, precisionFindings],
  ...{ question, lead },
  sections: [
    {
      id: 'times',
      title: 'Times',
      text: [
        'Each step begins and ends with an idle device. Next to each time is its floor: for each phase the ' +
          'larger of FLOPs over the measured matrix-product ceiling and bytes over the measured copy bandwidth.',
      ],
      blocks: [stepTimes, spreadOfTimes, peerNotes, compiledTable, peerTable, phaseTable],
    },
    { id: 'plots', title: 'Plots', blocks: [peerCharts, stepPlots] },
    { id: 'roof', title: 'Under the roof', blocks: [phaseRooflines] },
  ],
});
