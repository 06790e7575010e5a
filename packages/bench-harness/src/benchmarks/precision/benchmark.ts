import type { Table } from '@roofline/reports';
import { cellWords } from '../../parameters/cell-names.ts';
import { defineBenchmark } from '../define-benchmark.ts';
import { findingsTable } from '../../report/findings-table.ts';
import { describeCell, sizeName } from '../e2e/parameters.ts';
import { peerNotes } from '../e2e/report/findings.ts';
import {
  lossParameters,
  lowDtypes,
  precisionResult,
  precisionSweep,
  studies,
  type PrecisionCell,
} from './parameters.ts';
import {
  accumulationFinding,
  accuracyFinding,
  dtypeFinding,
  lossFinding,
  memoryFinding,
  normFinding,
  speedFindings,
} from './report/findings.ts';
import { lead } from './report/lead.ts';
import { cellsOf, type PrecisionCells } from './report/measured.ts';
import { lossPlot, normPlot, speedPlot } from './report/plots.ts';
import {
  accumulationTable,
  accuracyTable,
  compiledSpeedTable,
  dtypeTable,
  lossTable,
  normTable,
  speedTable,
} from './report/tables.ts';

const speedNotes = (cells: PrecisionCells) => peerNotes(cellsOf('speed', cells));

/** Mixed precision: what it rounds, where, what it does to the loss, and what it saves. */
export const precisionBenchmark = defineBenchmark({
  name: 'precision',
  title: 'Mixed precision',
  ...precisionSweep,
  result: precisionResult,
  describe: describePrecisionCell,
  sharesProcess: ({ study }, { peer }) => study === 'speed' && peer === null,
  samplesMs: (result) => (result.study === 'speed' ? result.deviceMs : []),
  peakBytes: (result) => (result.study === 'speed' ? result.memory.peakAllocatedBytes : null),
  table: everyFinding,
  overview: [speedNotes],
  lead,
  findings: [
    ...[speedFindings, memoryFinding, accuracyFinding],
    ...[accumulationFinding, lossFinding, dtypeFinding, normFinding],
  ],
  sections: [
    {
      id: 'study-accumulation',
      title: 'Accumulation',
      text: ['What a running sum loses to the rounding of its dtype, and of what is added.'],
      blocks: [accumulationTable],
    },
    {
      id: 'study-dtypes',
      title: 'Dtypes',
      text: ['Autocast casts by the op: parameters and gradients stay float32.'],
      blocks: [dtypeTable],
    },
    {
      id: 'study-norms',
      title: 'Norms',
      text: ['What becomes of LayerNorm and RMSNorm where each op of them is rounded to the low dtype.'],
      blocks: [normPlot, normTable],
    },
    {
      id: 'study-accuracy',
      title: 'Accuracy',
      text: ['The same weights and tokens in PyTorch, in float64 and under autocast.'],
      blocks: [accuracyTable],
    },
    {
      id: 'study-speed',
      title: 'Speed',
      text: ['Each precision in a process of its own.'],
      blocks: [speedTable, speedNotes, speedPlot, compiledSpeedTable],
    },
    {
      id: 'study-loss',
      title: 'Loss',
      text: ['The same training in each precision; float16 with dynamic loss scaling.'],
      blocks: [lossPlot, lossTable],
    },
  ],
});

/** The table of each study, and which of its columns say what was found. */
const findingsOf = {
  accumulation: [accumulationTable, ['sum']],
  dtypes: [dtypeTable, lowDtypes.flatMap((dtype) => [dtype, `torch-${dtype}`])],
  norms: [normTable, lowDtypes],
  accuracy: [accuracyTable, ['gradientRatio']],
  loss: [lossTable, ['steps', 'first', 'last', 'skipped']],
  speed: [speedTable, ['medianMs', 'speedUp']],
} as const satisfies Record<
  string,
  readonly [table: (cells: PrecisionCells) => Table[], finding: readonly string[]]
>;

function everyFinding(cells: PrecisionCells): Table {
  return findingsTable(
    'findings',
    'Mixed precision',
    studies.map((name) => {
      const [table, finding] = findingsOf[name];
      return { name, cells: cellsOf(name, cells), table: table(cells), finding };
    }),
  );
}

function describePrecisionCell(cell: PrecisionCell): string {
  switch (cell.study) {
    case 'accumulation':
      return 'accumulation';
    case 'dtypes':
      return `dtypes of a toy model · ${cell.dtype}`;
    case 'norms':
      return `norms · ${cell.dtype}`;
    case 'loss':
      return ['loss curve', ...cellWords(lossParameters, cell)].join(' · ');
    case 'accuracy':
      return `accuracy · ${sizeName(cell)} · context ${cell.context} · batch ${cell.batch} · ${cell.dtype}`;
    case 'speed':
      return describeCell(cell);
  }
}
