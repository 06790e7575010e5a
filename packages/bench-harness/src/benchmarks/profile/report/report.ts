import type { Block, Report, RooflinePlot, Section } from '@roofline/reports';
import type { CellRecord } from '../../../records/record.ts';
import { reportHead } from '../../../report/report-head.ts';
import { cellNames, type CellNames } from '../../../report/cell-names.ts';
import { cellSlug, interpretProfile, lastStep, type ProfileMeasurement } from '../interpret.ts';
import { describeCell } from '../../e2e/parameters.ts';
import { profileSummary, workOf } from './summary.ts';
import { kernelTimeCheckTable } from './kernel-time-check.ts';
import { compiledProfileTable } from './compiled-table.ts';
import { besidePeerTable, peerKernelTable } from './peer-tables.ts';
import { attentionTable, kernelTable, matmulTable, rangeTable, stepTable } from './tables.ts';
import { rangeLevelTable } from './range-levels.ts';
import { kernelKindsPlot } from './kernel-kinds.ts';
import { kernelRoofline } from './roofline.ts';
import { stepTimeline } from './timeline.ts';

/** The report of profiles of one device and one set of settings. */
export function profileReport(records: readonly CellRecord[]): Report {
  const measurements = records.map(interpretProfile);
  const names = cellNames(measurements.map(({ cell }) => cell));
  const charted = heaviest(measurements);
  const chart = charted && rooflineOf(charted);
  return {
    ...reportHead('Kernel profile', records),
    summary: profileSummary(measurements),
    ...(chart && { chart: { ...chart, title: `${chart.title}: ${describeCell(charted.cell)}` } }),
    sections: [
      overviewSection(measurements),
      ...measurements.flatMap((each) => cellSection(each, names, each === charted)),
    ],
  };
}

/** The cell with the most work: its roofline comes first. */
function heaviest(measurements: readonly ProfileMeasurement[]): ProfileMeasurement | undefined {
  return measurements
    .filter((each) => rooflineOf(each) !== null)
    .sort((a, b) => workOf(a.cell) - workOf(b.cell))
    .at(-1);
}

function rooflineOf(measurement: ProfileMeasurement): RooflinePlot | null {
  return kernelRoofline(measurement, `roofline-${cellSlug(measurement.cell)}`);
}

function overviewSection(measurements: readonly ProfileMeasurement[]): Section {
  const others = [
    attentionTable(measurements),
    besidePeerTable(measurements),
    compiledProfileTable(measurements),
  ].flatMap((table) => table ?? []);
  const opByOp: Block = {
    kind: 'note',
    tone: 'warning',
    text: 'On the CPU the ops of compiled steps ran one by one while they were profiled: only the plain steps ran compiled.',
  };
  const dropped = measurements.flatMap(({ profiled }) => profiled?.result.steps ?? []);
  const droppedRecords = dropped.reduce((sum, step) => sum + step.droppedRecords, 0);
  const warning: Block = {
    kind: 'note',
    tone: 'warning',
    text: `${droppedRecords} records found no room and are missing: profile fewer steps at a time.`,
  };
  return {
    id: 'profile',
    title: 'Where the time goes',
    blocks: [
      stepTable(measurements),
      ...(droppedRecords > 0 ? [warning] : []),
      ...(measurements.some(({ profiled }) => profiled?.isOpByOp) ? [opByOp] : []),
      matmulTable(measurements),
      ...others,
      kernelTimeCheckTable(measurements),
      rangeLevelTable(measurements),
    ],
  };
}

function cellSection(measurement: ProfileMeasurement, names: CellNames, isCharted: boolean): Section[] {
  const { cell, profiled } = measurement;
  if (profiled === null) return [];
  const slug = cellSlug(cell);
  const roofline = isCharted ? null : rooflineOf(measurement);
  const kinds = kernelKindsPlot(measurement, `kinds-${slug}`);
  const peerKernels = peerKernelTable(measurement, `pytorch-kernels-${slug}`);
  return [
    {
      id: `profile-${slug}`,
      title: `Kernels of ${names.name(cell)}`,
      blocks: [
        ...(roofline ? [roofline] : []),
        ...(kinds ? [kinds] : []),
        stepTimeline(
          lastStep(profiled.selected, profiled.result),
          `timeline-${slug}`,
          'Timeline of one step',
        ),
        kernelTable([measurement], `kernels-${slug}`),
        ...(peerKernels ? [peerKernels] : []),
        rangeTable([measurement], `ranges-${slug}`),
      ],
    },
  ];
}
