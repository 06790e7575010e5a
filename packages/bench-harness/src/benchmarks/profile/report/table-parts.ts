import type { Column, Row } from '@roofline/reports';
import { stepNames } from '../../e2e/parameters.ts';
import { outcomeOf } from '../../../report/declared-table.ts';
import type { ProfileMeasurement } from '../interpret.ts';

export const cellColumn: Column = { key: 'cell', label: 'Cell', kind: 'text', overflow: 'shorten' };

export const phaseColumn: Column = { key: 'phase', label: 'Phase', kind: 'text', emphasis: 'strong' };

export const nanoseconds = (key: string, label: string): Column => ({
  key,
  label,
  kind: 'number',
  digits: 1,
});

export const milliseconds = (key: string, label: string, description?: string): Column => ({
  key,
  label,
  unit: 'ms',
  kind: 'duration',
  ...(description === undefined ? {} : { description }),
});

// As Nsight Systems heads them.
export const durationColumns: readonly Column[] = [
  nanoseconds('averageNs', 'Avg (ns)'),
  ...[
    nanoseconds('medianNs', 'Med (ns)'),
    nanoseconds('minNs', 'Min (ns)'),
    nanoseconds('maxNs', 'Max (ns)'),
    nanoseconds('stdNs', 'StdDev (ns)'),
  ].map((column) => ({ ...column, detail: true })),
];

/** The columns of Nsight Systems' `cuda_gpu_kern_sum`; it has the name last, where narrow pages lose it. */
export const kernelSummaryColumns: readonly Column[] = [
  { key: 'name', label: 'Name', kind: 'text', overflow: 'shorten' },
  { key: 'timeShare', label: 'Time (%)', kind: 'percent', emphasis: 'strong' },
  nanoseconds('totalNs', 'Total Time (ns)'),
  { key: 'instances', label: 'Instances', kind: 'number' },
  ...durationColumns,
];

/** A table of one cell does not repeat it. */
export function cellColumns(measurements: readonly ProfileMeasurement[]): Column[] {
  return measurements.length > 1 ? [cellColumn] : [];
}

/** The rows of each cell, or one that says why it has none. */
export function tableRows(
  measurements: readonly ProfileMeasurement[],
  rowsOf: (measurement: ProfileMeasurement) => Row[],
): Row[] {
  const names = namesOf(measurements);
  return measurements.flatMap((measurement) => {
    const cell = names.name(measurement.cell);
    if (measurement.profiled === null) return [{ cell, ...outcomeOf(measurement.record) }];
    return rowsOf(measurement).map((row) => ({ cell, ...row }));
  });
}

/** What all cells share and no name says, to follow a caption. */
export function cellsCaption(measurements: readonly ProfileMeasurement[]): string {
  const { shared } = namesOf(measurements);
  return shared === '' ? '' : ` All rows: ${shared}.`;
}

function namesOf(measurements: readonly ProfileMeasurement[]) {
  return stepNames(measurements);
}
