import type { Column, Table } from '@roofline/reports';
import type { ProfileMeasurement } from '../interpret.ts';
import { withRoofSpread } from '../../../report/roof-spread.ts';
import { attentionShares, matmulShares, stepRow } from './shares.ts';
import { kernelSummary, rangeSummary } from './summaries.ts';
import {
  cellColumn,
  cellColumns,
  durationColumns,
  kernelSummaryColumns,
  milliseconds,
  nanoseconds,
  phaseColumn,
  cellsCaption,
  tableRows,
} from './table-parts.ts';

const achievedColumns: readonly Column[] = [
  {
    key: 'teraflopsPerSecond',
    label: 'Achieved',
    unit: 'TFLOP/s',
    kind: 'number',
    digits: 3,
    description: 'The FLOPs of the ops over the time of their longest kernel: matrix products only.',
  },
  {
    key: 'gigabytesPerSecond',
    label: 'Traffic',
    unit: 'GB/s',
    kind: 'number',
    digits: 3,
    description: 'The fewest bytes that the ops must move over the time of their longest kernel.',
  },
  {
    key: 'roofShare',
    label: 'Of the roof',
    kind: 'percent',
    emphasis: 'roof',
    description:
      'The least time that the measured ceilings allow over the time taken. Above the roof: what the cache kept from ' +
      'device memory.',
  },
];

/** The kernels by name: Nsight Systems' `cuda_gpu_kern_sum`, and what each reaches of the roof. */
export function kernelTable(measurements: readonly ProfileMeasurement[], id = 'kernels'): Table {
  const rows = tableRows(measurements, ({ profiled, record }) =>
    kernelSummary(profiled!.selected, record.ceilings),
  );
  return {
    kind: 'table',
    id,
    title: `Kernel summary${selectionTitle(measurements)}`,
    caption: 'All profiled steps together.',
    columns: [
      ...cellColumns(measurements),
      ...kernelSummaryColumns,
      ...withRoofSpread(
        achievedColumns.filter(({ key }) => rows.some((row) => typeof row[key] === 'number')),
        measurements.map(({ record }) => record),
      ),
    ],
    rows,
  };
}

/** The kernels by range: Nsight Systems' `nvtx_kern_sum`. */
export function rangeTable(measurements: readonly ProfileMeasurement[], id = 'ranges'): Table {
  return {
    kind: 'table',
    id,
    title: `Kernels by range${selectionTitle(measurements)}`,
    caption: 'A kernel counts in every range around it. All profiled steps together.',
    columns: [
      ...cellColumns(measurements),
      { key: 'range', label: 'NVTX Range', kind: 'text', emphasis: 'strong', overflow: 'shorten' },
      { key: 'name', label: 'Kernel Name', kind: 'text', overflow: 'shorten' },
      { key: 'style', label: 'Style', kind: 'text', detail: true },
      { key: 'pid', label: 'PID', kind: 'text', align: 'right', detail: true },
      { key: 'tid', label: 'TID', kind: 'text', align: 'right', detail: true },
      { key: 'rangeInstances', label: 'NVTX Inst', kind: 'number' },
      { key: 'instances', label: 'Kern Inst', kind: 'number' },
      nanoseconds('totalNs', 'Total Time (ns)'),
      ...durationColumns,
    ],
    rows: tableRows(measurements, ({ profiled }) => rangeSummary(profiled!.selected, profiled!.result)),
  };
}

export function stepTable(measurements: readonly ProfileMeasurement[], id = 'steps'): Table {
  return {
    kind: 'table',
    id,
    title: 'Kernel time against wall time',
    caption:
      'Medians of a step, whatever the selection. The cost of profiling is that of these few steps; `roofline overhead` ' +
      `measures it over many, by the host's clock.${cellsCaption(measurements)}`,
    columns: [
      cellColumn,
      { key: 'kernels', label: 'Kernels', kind: 'number', digits: 1 },
      milliseconds('kernelMs', 'Kernel time', 'The sum of all kernels, copies and fills.'),
      milliseconds('deviceMs', 'Device', 'Between two events on the device around the step.'),
      milliseconds('wallMs', 'Wall clock', "By the host's clock, from an idle device to an idle device."),
      milliseconds('plainMs', 'Device, not profiled', 'Of plain steps before a profiler was attached.'),
      {
        key: 'idleShare',
        label: 'Idle',
        kind: 'percent',
        description: 'The share of the time of a plain step, on the device, in which no kernel runs.',
      },
      {
        key: 'overhead',
        label: 'Cost of profiling',
        kind: 'percent',
        description: 'Profiled over plain device time, less one.',
      },
      { key: 'droppedRecords', label: 'Dropped records', kind: 'number' },
    ],
    rows: tableRows(measurements, ({ profiled }) => [stepRow(profiled!)]),
  };
}

export function matmulTable(measurements: readonly ProfileMeasurement[], id = 'matmul-share'): Table {
  return {
    kind: 'table',
    id,
    title: 'Matrix products against the rest',
    caption: `Kernel time of a step. A product includes the kernels that prepare its operands.${cellsCaption(measurements)}`,
    columns: [
      ...cellColumns(measurements),
      phaseColumn,
      { key: 'kernels', label: 'Kernels', kind: 'number', digits: 1 },
      milliseconds('kernelMs', 'All'),
      milliseconds('matmulMs', 'Products'),
      milliseconds('restMs', 'Rest'),
      { key: 'matmulShare', label: 'Share of products', kind: 'percent' },
    ],
    rows: tableRows(measurements, ({ profiled }) =>
      matmulShares(profiled!.spans, profiled!.result.steps.length),
    ),
  };
}

/** Null where no attention was in sight. */
export function attentionTable(measurements: readonly ProfileMeasurement[], id = 'attention'): Table | null {
  const rows = tableRows(measurements, ({ profiled }) =>
    attentionShares(profiled!.spans, profiled!.result.steps.length),
  ).filter((row) => row['phase'] !== undefined);
  if (rows.length === 0) return null;
  return {
    kind: 'table',
    id,
    title: 'Softmax against matrix products inside attention',
    caption: `Kernel time and FLOPs of a step.${cellsCaption(measurements)}`,
    columns: [
      ...cellColumns(measurements),
      phaseColumn,
      milliseconds('softmaxMs', 'Softmax'),
      milliseconds('matmulMs', 'Products'),
      { key: 'timeRatio', label: 'Time ratio', kind: 'ratio' },
      { key: 'softmaxGigaflops', label: 'Softmax', unit: 'GFLOP', kind: 'number', digits: 3 },
      { key: 'matmulGigaflops', label: 'Products', unit: 'GFLOP', kind: 'number', digits: 3 },
      { key: 'flopsRatio', label: 'FLOP ratio', kind: 'ratio', digits: 2 },
    ],
    rows,
  };
}

function selectionTitle(measurements: readonly ProfileMeasurement[]): string {
  const settings = measurements[0]?.settings;
  if (!settings) return '';
  const words = [
    ...(settings.phase === 'all' ? [] : [settings.phase]),
    ...(settings.range === null ? [] : [`ranges ${settings.range}`]),
  ];
  return words.length === 0 ? '' : `: ${words.join(', ')}`;
}
