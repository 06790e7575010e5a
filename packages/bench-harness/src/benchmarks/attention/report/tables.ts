import type { Column, Row, Table } from '@roofline/reports';
import { attentionCaption, attentionColumns } from '../../../report/attention-columns.ts';
import { withRoofSpread } from '../../../report/roof-spread.ts';
import { attentionRow, type AttentionMeasurement } from './interpret.ts';

const attentionColumn: Column = { key: 'attention', label: 'Attention', kind: 'text', emphasis: 'strong' };

/** Which attention, and how it ran where that differs. */
function wayColumns(rows: readonly Row[]): Column[] {
  if (rows.every(({ execution }) => execution === 'eager')) return [attentionColumn];
  return [attentionColumn, { key: 'execution', label: 'Execution', kind: 'text' }];
}

/** Of programs of both passes, and of eager cells to compare with. */
function bothColumns(rows: readonly Row[]): Column[] {
  return rows.every(({ execution }) => execution === 'eager')
    ? []
    : passColumns('both', 'Forward and backward');
}

const passColumns = (pass: string, label: string): Column[] => [
  {
    key: `${pass}Ms`,
    label,
    unit: 'ms',
    kind: 'duration',
    uncertaintyKey: `${pass}StdMs`,
    qualifies: `${pass}MedianMs`,
    description: 'Mean and standard deviation of the time between two events on the device around each pass.',
  },
  { key: `${pass}MedianMs`, label: `${label}, median`, unit: 'ms', kind: 'duration', emphasis: 'strong' },
  {
    key: `${pass}RoofShare`,
    label: `${label}, of the roof`,
    kind: 'percent',
    emphasis: 'roof',
    description: 'The least time that the measured ceilings allow for this work, over the median.',
  },
];

const usedColumn: Column = {
  key: 'beforeBackwardBytes',
  label: 'Before backward',
  kind: 'bytes',
  unitGroup: 'held',
  description: 'Bytes that tensors hold between the forward and the backward pass.',
};
const peakColumn: Column = {
  key: 'peakBytes',
  label: 'Peak memory',
  kind: 'bytes',
  unitGroup: 'held',
  description: 'Most bytes held by tensors at once, forward and backward.',
};

/** One row a cell: its times next to the roof's, and its memory. */
export function attentionTable(measurements: readonly AttentionMeasurement[]): Table {
  const rows = measurements.map(attentionRow);
  return {
    kind: 'table',
    id: 'pass-times',
    title: 'Attention, forward and backward',
    caption: attentionCaption(rows),
    columns: [
      ...attentionColumns(rows),
      ...wayColumns(rows),
      ...withRoofSpread(
        [...passColumns('forward', 'Forward'), ...passColumns('backward', 'Backward'), ...bothColumns(rows)],
        measurements.map(({ record }) => record),
      ),
      usedColumn,
      peakColumn,
    ],
    rows,
  };
}

/** What each cell needs by formula next to what was measured; also of cells that ran out of memory. */
export function memoryTable(measurements: readonly AttentionMeasurement[]): Table {
  const rows = measurements.map(attentionRow);
  return {
    kind: 'table',
    id: 'memory-need',
    title: 'Memory by formula and as measured',
    caption: attentionCaption(rows),
    columns: [
      ...attentionColumns(rows),
      ...wayColumns(rows),
      {
        key: 'keptBytes',
        label: 'Kept for backward',
        kind: 'bytes',
        description: 'By formula: the weights of plain attention, the statistics of each row of the others.',
      },
      {
        key: 'neededBytes',
        label: 'Before backward, by formula',
        kind: 'bytes',
        unitGroup: 'held',
        description: 'What is kept, q, k, v, the output and its gradient.',
      },
      { ...usedColumn, label: 'Before backward, measured' },
      { key: 'beforeBackwardRatio', label: 'Before backward, measured / formula', kind: 'ratio' },
      { key: 'neededPeakBytes', label: 'Peak, by formula', kind: 'bytes', unitGroup: 'held' },
      { ...peakColumn, label: 'Peak, measured' },
      { key: 'peakRatio', label: 'Peak, measured / formula', kind: 'ratio' },
    ],
    rows,
  };
}
