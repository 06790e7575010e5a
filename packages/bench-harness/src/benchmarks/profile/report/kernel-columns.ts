import type { ColumnOf } from '../../../report/declared-table.ts';
import { column } from '../../../report/standard-columns.ts';
import type { Durations, KernelGroup } from './summaries.ts';

const nanoseconds = (key: keyof Durations, label: string, detail = false): ColumnOf<Durations> =>
  column.number<Durations>(key, label, (row) => row[key], { digits: 1, ...(detail && { detail }) });

// As Nsight Systems heads them.
export const totalColumn = nanoseconds('totalNs', 'Total Time (ns)');
export const durationColumns: readonly ColumnOf<Durations>[] = [
  nanoseconds('averageNs', 'Avg (ns)'),
  nanoseconds('medianNs', 'Med (ns)', true),
  nanoseconds('minNs', 'Min (ns)', true),
  nanoseconds('maxNs', 'Max (ns)', true),
  nanoseconds('stdNs', 'StdDev (ns)', true),
];

/** The columns of Nsight Systems' `cuda_gpu_kern_sum`; it has the name last, where narrow pages lose it. */
export const kernelSummaryColumns: readonly ColumnOf<KernelGroup>[] = [
  column.text('name', 'Name', { overflow: 'shorten' }),
  column.percent('timeShare', 'Time (%)', { emphasis: 'strong' }),
  totalColumn,
  column.number('instances', 'Instances'),
  ...durationColumns,
];
