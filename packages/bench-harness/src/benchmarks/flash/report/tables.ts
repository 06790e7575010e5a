import { achievedColumn } from '../../../report/achieved-column.ts';
import type { Column, Table } from '@roofline/reports';
import type { Pass } from '../../../attention/work.ts';
import { attentionCaption, attentionColumns } from '../../../report/attention-columns.ts';
import { withRoofSpread } from '../../../report/roof-spread.ts';
import { flashRow, type FlashMeasurement } from './interpret.ts';

const implementationColumn: Column = {
  key: 'implementation',
  label: 'Attention',
  kind: 'text',
  emphasis: 'strong',
};

const timeColumns: readonly Column[] = [
  { key: 'medianMs', label: 'Median', unit: 'ms', kind: 'duration', emphasis: 'strong' },
  {
    key: 'lowMs',
    label: '20 %',
    unit: 'ms',
    kind: 'duration',
    qualifies: 'medianMs',
    description: 'A fifth of the samples are shorter.',
  },
  {
    key: 'highMs',
    label: '80 %',
    unit: 'ms',
    kind: 'duration',
    qualifies: 'medianMs',
    description: 'A fifth of the samples are longer.',
  },
];

const besideColumns: readonly Column[] = [
  {
    key: 'roofShare',
    label: 'Of the roof',
    kind: 'percent',
    emphasis: 'roof',
    description: 'The least time that the measured ceilings allow for this work, over the median.',
  },
  {
    key: 'overPlain',
    label: 'Over plain',
    kind: 'ratio',
    description: 'How many times as fast as plain attention of the same side: ratio of the medians.',
  },
  {
    key: 'ratio',
    label: 'Flash / this',
    kind: 'ratio',
    emphasis: 'strong',
    description: 'Time of our flash attention over that of this one: below 1 ours is faster.',
  },
  {
    key: 'ratioInterval',
    label: '95 % interval',
    kind: 'text',
    align: 'right',
    qualifies: 'ratio',
    description: 'Of the ratio, by bootstrap over the samples of both.',
  },
];

/** One row for each attention and pass of each cell. */
export function flashTable(measurements: readonly FlashMeasurement[]): Table {
  return tableOf(measurements, 'times-in-turn', 'Attention, in turn', [
    implementationColumn,
    { key: 'pass', label: 'Pass', kind: 'text' },
  ]);
}

/** One row for each attention in one pass. */
export function passTable(measurements: readonly FlashMeasurement[], pass: Pass): Table {
  const ofPass = measurements.filter((each) => each.pass === pass);
  return tableOf(ofPass, `${pass}-times`, passTitles[pass], [implementationColumn]);
}

/** The most that each attention held, whatever passes were timed. */
export function memoryTable(measurements: readonly FlashMeasurement[]): Table {
  const [first] = measurements;
  const rows = measurements.filter(({ pass }) => pass === first?.pass).map(flashRow);
  return {
    kind: 'table',
    id: 'peak-memory',
    title: 'Peak memory',
    caption: attentionCaption(rows),
    columns: [
      ...attentionColumns(rows),
      implementationColumn,
      {
        key: 'peakBytes',
        label: 'Peak memory',
        kind: 'bytes',
        description: 'Most bytes held at once by operands and one forward and backward pass.',
      },
    ],
    rows,
  };
}

export const passTitles: Readonly<Record<Pass, string>> = {
  forward: 'Forward',
  backward: 'Backward',
  both: 'Forward and backward together',
};

function tableOf(
  measurements: readonly FlashMeasurement[],
  id: string,
  title: string,
  names: readonly Column[],
): Table {
  const rows = measurements.map(flashRow);
  const isFilled = ({ key }: Column) => rows.some((row) => row[key] !== undefined && row[key] !== null);
  return {
    kind: 'table',
    id,
    title,
    caption: attentionCaption(rows),
    columns: [
      ...attentionColumns(rows),
      ...names,
      ...timeColumns,
      achievedColumn(rows, 'FLOPs by formula, a causal mask halving them, over the median time.'),
      ...withRoofSpread(
        besideColumns.filter(isFilled),
        measurements.map(({ record }) => record),
      ),
    ],
    rows,
  };
}
