import type { Block, Report, Section } from '@roofline/reports';
import type { CellRecord } from '../../../records/record.ts';
import { reportHead } from '../../../report/report-head.ts';
import { cellNames, type CellNames } from '../../../report/cell-names.ts';
import { cellSlug, interpretProfile, lastStep, type ProfileMeasurement } from '../interpret.ts';
import { profileSummary } from './summary.ts';
import { kernelTimeCheckTable } from './kernel-time-check.ts';
import { besidePeerTable, peerKernelTable } from './peer-tables.ts';
import { attentionTable, kernelTable, matmulTable, rangeTable, stepTable } from './tables.ts';
import { rangeLevelTable } from './range-levels.ts';
import { kernelRoofline } from './roofline.ts';
import { stepTimeline } from './timeline.ts';

/** The report of profiles of one device and one set of settings. */
export function profileReport(records: readonly CellRecord[]): Report {
  const measurements = records.map(interpretProfile);
  const names = cellNames(measurements.map(({ cell }) => cell));
  return {
    ...reportHead('Kernel profile', records),
    summary: profileSummary(measurements),
    sections: [overviewSection(measurements), ...measurements.flatMap((each) => cellSection(each, names))],
  };
}

function overviewSection(measurements: readonly ProfileMeasurement[]): Section {
  const others = [attentionTable(measurements), besidePeerTable(measurements)].flatMap(
    (table) => table ?? [],
  );
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
      matmulTable(measurements),
      ...others,
      kernelTimeCheckTable(measurements),
      rangeLevelTable(measurements),
    ],
  };
}

function cellSection(measurement: ProfileMeasurement, names: CellNames): Section[] {
  const { cell, profiled } = measurement;
  if (profiled === null) return [];
  const slug = cellSlug(cell);
  const roofline = kernelRoofline(measurement, `roofline-${slug}`);
  const peerKernels = peerKernelTable(measurement, `pytorch-kernels-${slug}`);
  return [
    {
      id: `profile-${slug}`,
      title: `Kernels of ${names.name(cell)}`,
      blocks: [
        ...(roofline ? [roofline] : []),
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
