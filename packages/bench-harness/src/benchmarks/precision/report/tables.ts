import type { Table } from '@roofline/reports';
import { tablesOf, type ColumnOf, type RowItem } from '../../../report/declared-table.ts';
import { column, medianColumn, peakColumn } from '../../../report/standard-columns.ts';
import { stepParameters } from '../../e2e/parameters.ts';
import { compiledTable } from '../../e2e/report/tables.ts';
import { lossParameters, toyTensors, type NormError } from '../parameters.ts';
import {
  cellsOf,
  measuredIn,
  speedsOf,
  type MeasuredOf,
  type PrecisionCells,
  type Speed,
} from './measured.ts';

const strong = { emphasis: 'strong' } as const;

/** A sum to eight decimals: a float32 holds no more. */
export function formatSum(sum: number): string {
  return sum.toFixed(8);
}

const EXACT_SUM = 10;

/** One experiment on one device. */
interface Sum extends RowItem {
  readonly experiment: string;
  readonly device: string;
  readonly sum: number;
}

export function accumulationTable(cells: PrecisionCells): Table[] {
  return tablesOf<Sum>(
    {
      ...{ id: 'accumulation', title: '1,000 times 0.01' },
      columns: [
        column.text('experiment', 'Sum and addend'),
        column.text('device', 'Device'),
        column.text('sum', 'Sum', ({ sum }) => formatSum(sum), { ...strong, align: 'right' }),
      ],
      facts: ({ sum }) => ({ offBy: sum - EXACT_SUM }),
    },
    measuredIn('accumulation', cells).flatMap(({ record, result }) =>
      result.sums.map((sum) => ({ record, cell: {}, ...sum })),
    ),
  );
}

/** One row a tensor; one column a precision, and one more for each that PyTorch was asked for. */
export function dtypeTable(cells: PrecisionCells): Table[] {
  const measured = measuredIn('dtypes', cells);
  const models = measured.flatMap(({ cell: { dtype }, result: { ours, torch } }) => [
    { key: dtype as string, label: `autocast to ${dtype}`, dtypes: ours },
    ...(torch ? [{ key: `torch-${dtype}`, label: `PyTorch, ${dtype}`, dtypes: torch }] : []),
  ]);
  const [first] = measured;
  return tablesOf(
    {
      ...{ id: 'dtypes', title: 'Dtypes in a toy model' },
      caption: 'A linear layer to 10, ReLU, layerNorm and a linear layer, read from the running model.',
      columns: [
        column.text('tensor', 'Tensor'),
        ...models.map(({ key, label, dtypes }) =>
          column.text<{ tensor: (typeof toyTensors)[number] }>(key, label, ({ tensor }) => dtypes[tensor]),
        ),
      ],
    },
    first ? toyTensors.map((tensor) => ({ record: first.record, cell: {}, tensor })) : [],
  );
}

/** One row a norm, part and magnitude; one column a dtype. */
export function normTable(cells: PrecisionCells): Table[] {
  const measured = measuredIn('norms', cells);
  const [first] = measured;
  const errorOf = (errors: readonly NormError[], { norm, part, magnitude }: NormError) =>
    errors.find((each) => each.norm === norm && each.part === part && each.magnitude === magnitude)?.offBy;
  return tablesOf<NormError & RowItem>(
    {
      ...{ id: 'norms', title: 'Norms in low precision' },
      caption:
        'Errors relative to float64, of inputs whose mean and standard deviation are the magnitude. Each op rounds its result, but ' +
        'for the last part. Without a number a value overflowed.',
      columns: [
        column.text('norm', 'Norm'),
        column.text('part', 'Part', { emphasis: 'strong' }),
        column.count('magnitude', 'Inputs'),
        ...measured.map(({ cell: { dtype }, result: { errors } }) =>
          column.number<NormError & RowItem>(dtype, dtype, (row) => errorOf(errors, row), { digits: 2 }),
        ),
      ],
    },
    first ? first.result.errors.map((each) => ({ record: first.record, cell: {}, ...each })) : [],
  );
}

const { mode: _, ...modelParameters } = stepParameters;
const error = { digits: 2 } as const;

const accuracyColumns: readonly ColumnOf<MeasuredOf<'accuracy'>>[] = [
  column.number('lossError', 'Loss', ({ result }) => result.ours.loss, error),
  column.number('torchLossError', 'Loss, PyTorch', ({ result }) => result.theirs.loss, error),
  column.number('gradientError', 'Gradients', ({ result }) => result.ours.gradients, error),
  column.number('torchGradientError', 'Gradients, PyTorch', ({ result }) => result.theirs.gradients, error),
  column.ratio('gradientRatio', 'Ours / PyTorch', ({ result }) => gradientRatio(result), strong),
  column.ratio('worstRatio', 'Worst ratio', ({ result }) => result.worst.ratio),
  column.text('worst', 'Worst parameter', ({ result }) => result.worst.parameter),
];

export function gradientRatio({ ours, theirs }: MeasuredOf<'accuracy'>['result']): number {
  return ours.gradients / theirs.gradients;
}

export function accuracyTable(cells: PrecisionCells): Table[] {
  return tablesOf(
    {
      ...{ id: 'accuracy', title: 'Errors against float64' },
      caption: 'Relative errors of one loss and of all its gradients under autocast.',
      ...{ parameters: modelParameters, columns: accuracyColumns },
    },
    cellsOf('accuracy', cells) as readonly MeasuredOf<'accuracy'>[],
  );
}

const speedColumns: readonly ColumnOf<Speed>[] = [
  medianColumn,
  column.ratio('speedUp', 'Speed-up', strong),
  peakColumn,
  column.ratio('peerRatio', 'Ours / PyTorch', ({ peer }) => peer?.ratio.ratio, {
    ...strong,
    shown: 'filled',
  }),
  column.ratio('memoryRatio', 'Memory ratio', ({ peer }) => peer?.memoryRatio, { shown: 'filled' }),
];

export function speedTable(cells: PrecisionCells): Table[] {
  return tablesOf(
    {
      ...{ id: 'speed', title: 'Time of one step by precision' },
      caption: 'Medians of the device time; the speed-up is over the same in float32.',
      ...{ parameters: stepParameters, columns: speedColumns },
    },
    speedsOf(cells),
  );
}

/** Compiled steps compared with eager ones, where a cell was timed both ways. */
export function compiledSpeedTable(cells: PrecisionCells): Table[] {
  return compiledTable(cellsOf('speed', cells));
}

const nats = { unit: 'nats', digits: 4 } as const;

const lossColumns: readonly ColumnOf<MeasuredOf<'loss'>>[] = [
  column.count('steps', 'Steps', ({ result }) => result.losses.length),
  column.number('first', 'First', ({ result }) => result.losses[0], nats),
  column.number('last', 'Last', ({ result }) => result.losses.at(-1), { ...nats, ...strong }),
  column.count('skipped', 'Skipped steps', ({ result }) => result.skipped),
];

export function lossTable(cells: PrecisionCells): Table[] {
  return tablesOf(
    {
      ...{ id: 'losses', title: 'Loss of the overfitting example' },
      ...{ parameters: lossParameters, columns: lossColumns },
    },
    cellsOf('loss', cells) as readonly MeasuredOf<'loss'>[],
  );
}
