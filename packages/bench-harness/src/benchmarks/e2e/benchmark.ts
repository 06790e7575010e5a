import { defineBenchmark } from '../define-benchmark.ts';
import { spreadOfTimes } from '../present.ts';
import {
  expandCells,
  e2eParameters,
  stepParameters,
  type E2eParameters,
  type E2eSettings,
} from './parameters.ts';
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
  parameters: e2eParameters,
  cell: stepParameters,
  result: e2eResult,
  settings: ({ warmup, steps, seed, peer, execution }: E2eParameters): E2eSettings => ({
    ...{ warmup, steps, seed, peer },
    ...(execution.length > 1 && execution.includes('eager') && { sweepsEager: true as const }),
  }),
  expand: expandCells,
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
