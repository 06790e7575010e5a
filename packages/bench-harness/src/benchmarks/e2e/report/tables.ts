import type { Column, Row, Table } from '@roofline/reports';
import { achievedColumn } from '../../../report/achieved-column.ts';
import { configurationColumns, sharedCaption } from '../../../report/configuration-columns.ts';
import { medianColumn, roofColumns } from '../../../report/roof-columns.ts';
import { withRoofSpread } from '../../../report/roof-spread.ts';
import { tableRow, type E2eMeasurement } from './interpret.ts';

const timeColumns: Column[] = [
  {
    key: 'meanMs',
    label: 'Device time',
    unit: 'ms',
    kind: 'duration',
    uncertaintyKey: 'stdMs',
    qualifies: 'medianMs',
    description: 'Mean and standard deviation of the time between two events on the device around each step.',
  },
  medianColumn,
  { key: 'tokensPerSecond', label: 'Tokens/s', kind: 'number', digits: 3 },
];

const roofAndMemoryColumns: Column[] = [
  ...roofColumns,
  {
    key: 'peakBytes',
    label: 'Peak memory',
    kind: 'bytes',
    description: 'Most bytes held by tensors at once.',
  },
];

const peerColumns: Column[] = [
  {
    key: 'peerMs',
    label: 'PyTorch',
    unit: 'ms',
    kind: 'duration',
    description: 'Median, measured in turn.',
  },
  {
    key: 'ratio',
    label: 'Ours / PyTorch',
    kind: 'ratio',
    emphasis: 'strong',
    description: 'Ratio of the medians: below 1 is faster than PyTorch.',
  },
  {
    key: 'ratioInterval',
    label: '95 % interval',
    kind: 'text',
    align: 'right',
    qualifies: 'ratio',
    description: 'Of the ratio, by bootstrap over the steps of both.',
  },
  {
    key: 'memoryRatio',
    label: 'Memory ratio',
    kind: 'ratio',
    description:
      "Our peak memory over PyTorch's; where that replays CUDA graphs (reduce-overhead, max-autotune), of reserved memory, " +
      'for it does not count what graphs work in as allocated.',
  },
];

const optimizerTrafficColumn: Column = {
  key: 'optimizerGigabytesPerSecond',
  label: 'Optimizer traffic',
  unit: 'GB/s',
  kind: 'number',
  digits: 3,
  detail: true,
  description: '28 bytes a parameter over the median of the optimizer phase.',
};

const optimizerColumn: Column = {
  key: 'optimizerCopyShare',
  label: 'Optimizer bandwidth',
  kind: 'percent',
  detail: true,
  description:
    'Train steps: 28 bytes a parameter (AdamW reads four float32 values and writes three) over the median of ' +
    'the optimizer phase, against the measured ceiling of copies.',
};

/** One row a cell: its time, its distance from the roof, and the peer's next to it where one ran. */
export function stepTable(measurements: readonly E2eMeasurement[]): Table {
  const rows = measurements.map(tableRow);
  const extra = [optimizerColumn, ...peerColumns].filter(({ key }) => isFilled(rows, key));
  const table = timeTable(measurements);
  const caption = [table.caption, productsOfPeer(measurements)].filter(Boolean).join(' ');
  return { ...table, caption, columns: [...table.columns, ...extra] };
}

/** On the CPU, which library PyTorch's products came from: it decides most of its time. */
function productsOfPeer(measurements: readonly E2eMeasurement[]): string {
  const libraries = measurements.flatMap(({ measured }) => {
    const peer = measured?.result.peer;
    return peer?.status === 'ok' ? (peer.blas ?? []) : [];
  });
  return libraries.length === 0 ? '' : `PyTorch's products: ${[...new Set(libraries)].join('; ')}.`;
}

/** The part of it that a page has room for. */
export function timeTable(measurements: readonly E2eMeasurement[]): Table {
  const rows = measurements.map(tableRow);
  return {
    kind: 'table',
    id: 'step-times',
    title: 'Time of one step',
    caption: sharedCaption(rows),
    columns: [
      ...configurationColumns(rows),
      ...timeColumns,
      achievedColumn(rows, "The model's FLOPs over the median time."),
      ...withRoofSpread(
        roofAndMemoryColumns,
        measurements.map(({ record }) => record),
      ),
    ],
    rows,
  };
}

/** Ours compared with PyTorch; null where no peer ran. */
export function peerTable(measurements: readonly E2eMeasurement[]): Table | null {
  const rows = measurements.map(tableRow).filter((row) => typeof row['ratio'] === 'number');
  if (rows.length === 0) return null;
  const ours: Column = {
    key: 'medianMs',
    label: 'Ours',
    unit: 'ms',
    kind: 'duration',
    description: 'Median.',
  };
  return {
    kind: 'table',
    id: 'beside-pytorch',
    title: 'Beside PyTorch',
    caption: ['Steps of both in turn, in one sitting.', sharedCaption(rows), productsOfPeer(measurements)]
      .filter(Boolean)
      .join(' '),
    columns: [...configurationColumns(rows), ours, ...peerColumns.filter(({ key }) => isFilled(rows, key))],
    rows,
  };
}

/** Where the time of a step goes; null when only forward passes were measured. */
export function phaseTable(measurements: readonly E2eMeasurement[]): Table | null {
  const rows = measurements.map(tableRow).filter((row) => typeof row['backwardMs'] === 'number');
  if (rows.length === 0) return null;
  const phase = (key: string, label: string): Column => ({ key, label, unit: 'ms', kind: 'duration' });
  const phases = [
    phase('forwardMs', 'Forward'),
    phase('backwardMs', 'Backward'),
    phase('optimizerMs', 'Optimizer'),
    ...[optimizerTrafficColumn, optimizerColumn].filter(({ key }) => isFilled(rows, key)),
    { ...phase('wallMedianMs', 'Wall clock'), description: "Median of a whole step by the host's clock." },
  ];
  return {
    kind: 'table',
    id: 'phases',
    title: 'Phases of a step',
    caption: `Medians of the device time. ${sharedCaption(rows)}`.trim(),
    columns: [...configurationColumns(rows), ...phases],
    rows,
  };
}

function isFilled(rows: readonly Row[], key: string): boolean {
  return rows.some((row) => row[key] !== undefined && row[key] !== null);
}
