import type { Table } from '@roofline/reports';
import type { Measurement } from '../../report/measurement.ts';
import { defineBenchmark } from '../define-benchmark.ts';
import { expandCells, stepParameters } from '../e2e/parameters.ts';
import { profileOf, type ProfileMeasurement } from './interpret.ts';
import {
  profileParameters,
  type ProfileCell,
  type ProfileParameters,
  type ProfileSettings,
} from './parameters.ts';
import { compiledProfileTable } from './report/compiled-table.ts';
import { kernelTimeCheckTable } from './report/kernel-time-check.ts';
import { besidePeerTable, topKernelsTable } from './report/peer-tables.ts';
import { rangeLevelTable } from './report/range-levels.ts';
import { explainExecutions, lead } from './report/lead.ts';
import { cellSections, profileNotes } from './report/sections.ts';
import { emptySelections, profileSummary } from './report/summary.ts';
import { attentionTable, kernelTable, matmulTable, stepTable } from './report/tables.ts';
import { profileResult, type ProfileResult } from './result.ts';

type Cells = readonly Measurement<ProfileCell, ProfileResult>[];
type Profiles = readonly ProfileMeasurement[];

/** A block of all profiles; none where there is nothing to show. */
const of = (make: (profiles: Profiles) => Table | null) => (cells: Cells) => {
  const table = make(cells.map(profileOf));
  return table ? [table] : [];
};
const notes = (cells: Cells) => profileNotes(cells.map(profileOf));
const steps = of((profiles) => stepTable(profiles));
const products = of((profiles) => matmulTable(profiles));
const attention = of((profiles) => attentionTable(profiles));
const besidePeer = of((profiles) => besidePeerTable(profiles));
const compiled = of((profiles) => compiledProfileTable(profiles));
const check = of((profiles) => kernelTimeCheckTable(profiles));

/** The kernels of a training step by name, by range and over time. */
export const profileBenchmark = defineBenchmark({
  name: 'profile',
  title: 'Kernel profile',
  parameters: profileParameters,
  cell: stepParameters,
  result: profileResult,
  settings: ({ warmup, steps, seed, phase, range, peer }: ProfileParameters): ProfileSettings => ({
    ...{ warmup, steps, seed, phase, range, peer },
  }),
  expand: (parameters: ProfileParameters): ProfileCell[] => expandCells(parameters),
  samplesMs: ({ profiledMs }) => profiledMs,
  table: (cells) => kernelTable(cells.map(profileOf)),
  overview: [
    ...[steps, products, attention, besidePeer, compiled, check],
    of((profiles) => topKernelsTable(profiles)),
    notes,
    // Rows of nothing do not say why.
    (cells) => emptySelections(cells.map(profileOf)).map((text) => ({ kind: 'note', text })),
  ],
  findings: [
    (cells) => emptySelections(cells.map(profileOf)),
    (cells) => profileSummary(cells.map(profileOf)),
  ],
  lead: (cells) => lead(cells.map(profileOf)),
  sections: [
    {
      id: 'profile',
      title: 'Where the time goes',
      text: (cells) => explainExecutions(cells.map(profileOf)),
      blocks: [
        ...[steps, notes, products, attention, besidePeer, compiled, check],
        of((profiles) => rangeLevelTable(profiles)),
      ],
    },
    (cells) => cellSections(cells.map(profileOf)),
  ],
});
