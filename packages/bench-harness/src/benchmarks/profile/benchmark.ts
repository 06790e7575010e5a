import { defineBenchmark } from '../define-benchmark.ts';
import { stepSweepOf } from '../e2e/parameters.ts';
import { profileSettings } from './parameters.ts';
import { compiledTables } from './report/compiled-table.ts';
import { besidePeerTables, topKernelsTables } from './report/peer-tables.ts';
import { rangeLevelTables } from './report/range-levels.ts';
import { explainExecutions, lead } from './report/lead.ts';
import { cellSections, profileNotes } from './report/sections.ts';
import { emptySelections, profileSummary } from './report/summary.ts';
import { attentionTables, kernelTable, matmulTables, topTables } from './report/tables.ts';
import { stepTables } from './report/step-times.ts';
import { unitTables } from './report/units.ts';
import { profileResult } from './result.ts';

/** How the time of a step is spent, in all cells. */
const overview = [
  ...[stepTables, profileNotes, topTables, matmulTables, unitTables, attentionTables],
  ...[besidePeerTables, compiledTables],
];

/** The kernels of a training step by name, by range and over time. */
export const profileBenchmark = defineBenchmark({
  name: 'profile',
  title: 'Kernel profile',
  ...stepSweepOf(profileSettings),
  result: profileResult,
  samplesMs: ({ profiledMs }) => profiledMs,
  table: (cells) => kernelTable(cells),
  overview: [
    ...[...overview, topKernelsTables],
    // Rows of nothing do not say why.
    (cells) => emptySelections(cells).map((text) => ({ kind: 'note', text })),
  ],
  findings: [emptySelections, profileSummary],
  lead,
  sections: [
    {
      id: 'profile',
      title: 'Where the time goes',
      text: explainExecutions,
      blocks: [...overview, rangeLevelTables],
    },
    cellSections,
  ],
});
