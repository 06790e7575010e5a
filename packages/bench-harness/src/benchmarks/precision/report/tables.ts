import { type Column, type Row, type Table, formatDuration, formatRatio } from '@roofline/reports';
import { sizeName } from '../../e2e/parameters.ts';
import { compiledTable } from '../../e2e/report/compiled-table.ts';
import { interpretRecord } from '../../e2e/report/interpret.ts';
import type { CellRecord } from '../../../records/record.ts';
import {
  measurementsOf,
  speedsOf,
  sweptOf,
  sweptWords,
  type Measurement,
  type Speed,
} from './measurements.ts';
import { countColumn } from '../../../report/parameter-titles.ts';
import { lossWords, toyTensors } from '../parameters.ts';

const text = (key: string, label: string): Column => ({ key, label, kind: 'text' });

/** A sum to eight decimals: a float32 holds no more. */
export function formatSum(sum: number): string {
  return sum.toFixed(8);
}

export function accumulationTable(records: readonly CellRecord[]): Table {
  return {
    kind: 'table',
    id: 'accumulation',
    title: '1,000 times 0.01',
    columns: [
      text('experiment', 'Sum and addend'),
      text('device', 'Device'),
      { key: 'sum', label: 'Sum', kind: 'text', align: 'right', emphasis: 'strong' },
    ],
    rows: measurementsOf('accumulation', records).flatMap(({ result }) =>
      (result?.sums ?? []).map(({ sum, ...rest }) => ({ ...rest, sum: formatSum(sum) })),
    ),
  };
}

/** One column a precision, and one more for each that PyTorch was asked for. */
export function dtypeTable(records: readonly CellRecord[]): Table {
  const models = measurementsOf('dtypes', records).flatMap(({ cell, result }) => [
    ...(result ? [{ key: cell.dtype, label: `autocast to ${cell.dtype}`, dtypes: result.ours }] : []),
    ...(result?.torch
      ? [{ key: `torch-${cell.dtype}`, label: `PyTorch, ${cell.dtype}`, dtypes: result.torch }]
      : []),
  ]);
  return {
    kind: 'table',
    id: 'dtypes',
    title: 'Dtypes in a toy model',
    caption: 'A linear layer to 10, ReLU, layerNorm and a linear layer, read from the running model.',
    columns: [text('tensor', 'Tensor'), ...models.map(({ key, label }) => text(key, label))],
    rows: toyTensors.map((tensor) => ({
      tensor,
      ...Object.fromEntries(models.map(({ key, dtypes }) => [key, dtypes[tensor]])),
    })),
  };
}

const error = (key: string, label: string): Column => ({ key, label, kind: 'number', digits: 2 });

export function accuracyTable(records: readonly CellRecord[]): Table {
  const rows = measurementsOf('accuracy', records).map(accuracyRow);
  return {
    kind: 'table',
    id: 'accuracy',
    title: 'Errors against float64',
    caption: 'Relative errors of one loss and of all its gradients under autocast.',
    columns: [
      text('size', 'Size'),
      ...sweptOf(rows, ['context', 'batch']).map(countColumn),
      text('dtype', 'Dtype'),
      error('lossError', 'Loss'),
      error('torchLossError', 'Loss, PyTorch'),
      error('gradientError', 'Gradients'),
      error('torchGradientError', 'Gradients, PyTorch'),
      { key: 'gradientRatio', label: 'Ours / PyTorch', kind: 'ratio', emphasis: 'strong' },
      { key: 'worstRatio', label: 'Worst ratio', kind: 'ratio' },
      text('worst', 'Worst parameter'),
    ],
    rows,
  };
}

function accuracyRow({ cell, record, result }: Measurement<'accuracy'>): Row {
  const { context, batch, dtype } = cell;
  const workload = { size: sizeName(cell), context, batch, dtype };
  if (result === null) return { ...workload, ...statusOf(record) };
  const { ours, theirs, worst } = result;
  return {
    ...workload,
    lossError: ours.loss,
    torchLossError: theirs.loss,
    gradientError: ours.gradients,
    torchGradientError: theirs.gradients,
    gradientRatio: ours.gradients / theirs.gradients,
    worstRatio: worst.ratio,
    worst: worst.parameter,
  };
}

export function speedTable(records: readonly CellRecord[]): Table {
  const rows = speedsOf(records).map(speedRow);
  const peer: Column[] = [
    { key: 'peerRatio', label: 'Ours / PyTorch', kind: 'ratio', emphasis: 'strong' },
    { key: 'memoryRatio', label: 'Memory ratio', kind: 'ratio' },
  ];
  return {
    kind: 'table',
    id: 'speed',
    title: 'Time of one step by precision',
    caption: 'Medians of the device time; the speed-up is over the same in float32.',
    columns: [
      text('size', 'Size'),
      countColumn('context'),
      ...sweptOf(rows, ['batch']).map(countColumn),
      text('mode', 'Mode'),
      text('dtype', 'Dtype'),
      { key: 'medianMs', label: 'Median', unit: 'ms', kind: 'duration', emphasis: 'strong' },
      { key: 'speedUp', label: 'Speed-up', kind: 'ratio', emphasis: 'strong' },
      { key: 'peakBytes', label: 'Peak memory', kind: 'bytes' },
      ...peer.filter(({ key }) => rows.some((row) => typeof row[key] === 'number')),
    ],
    rows,
  };
}

function speedRow({ cell, record, result, medianMs, speedUp }: Speed): Row {
  const { context, batch, mode, dtype } = cell;
  const peer = interpretRecord(record).measured?.peer;
  return {
    size: sizeName(cell),
    context,
    batch,
    mode,
    dtype,
    ...statusOf(record),
    medianMs,
    speedUp,
    peakBytes: result?.memory.peakAllocatedBytes,
    peerRatio: peer?.ratio.ratio,
    memoryRatio: peer?.memoryRatio,
  };
}

/** Compiled steps compared with eager ones; null where no cell was timed both ways. */
export function compiledSpeedTable(records: readonly CellRecord[]): Table | null {
  return compiledTable(measurementsOf('speed', records).map(({ record }) => interpretRecord(record)));
}

export function lossTable(records: readonly CellRecord[]): Table {
  return {
    kind: 'table',
    id: 'losses',
    title: 'Loss of the overfitting example',
    columns: [
      text('dtype', 'Dtype'),
      { key: 'steps', label: 'Steps', kind: 'text', align: 'right' },
      { key: 'first', label: 'First', unit: 'nats', kind: 'number', digits: 4 },
      { key: 'last', label: 'Last', unit: 'nats', kind: 'number', digits: 4, emphasis: 'strong' },
      { key: 'skipped', label: 'Skipped steps', kind: 'text', align: 'right' },
    ],
    rows: measurementsOf('loss', records).map(({ cell, record, result }) => ({
      dtype: lossWords(cell).join(', '),
      ...statusOf(record),
      steps: result?.losses.length,
      first: result?.losses[0],
      last: result?.losses.at(-1),
      skipped: result?.skipped,
    })),
  };
}

function statusOf({ status, error }: CellRecord): Row {
  return error === null ? { status } : { status, error: error.message };
}

/** Everything that was found, one finding a row: what the command prints. */
export function findingsTable(records: readonly CellRecord[]): Table {
  const tables = [accumulationTable, dtypeTable, accuracyTable, lossTable, speedTable];
  const [sums, dtypes, accuracies, losses, speeds] = tables.map((make) => make(records).rows);
  const [ofAccuracy, ofSpeed] = [
    sweptWords(accuracies!, ['context', 'batch']),
    sweptWords(speeds!, ['batch']),
  ];
  const rows: Row[] = [
    // Their own tables have no rows of what was not measured.
    ...(['accumulation', 'dtypes'] as const).flatMap((study) =>
      measurementsOf(study, records)
        .filter(({ result }) => result === null)
        .map(({ cell, record }) => finding(study, 'all', { ...cell, ...statusOf(record) }, null)),
    ),
    ...sums!.map((row) =>
      finding('accumulation', `${row['experiment']} on ${row['device']}`, row, row['sum']),
    ),
    ...dtypes!.flatMap(({ tensor, ...each }) =>
      Object.entries(each).map(([dtype, is]) => finding('dtypes', String(tensor), { dtype }, is)),
    ),
    ...accuracies!.map((row) =>
      finding('accuracy', [row['size'], ...ofAccuracy(row), 'gradients'].join(', '), row, ratioText(row)),
    ),
    ...losses!.map((row) =>
      finding('loss', row['steps'] === undefined ? 'all steps' : `${row['steps']} steps`, row, lossText(row)),
    ),
    ...speeds!.map((row) => {
      const what = [row['size'], `context ${row['context']}`, ...ofSpeed(row), row['mode']].join(', ');
      return finding('speed', what, row, speedText(row));
    }),
  ];
  return {
    kind: 'table',
    id: 'findings',
    title: 'Mixed precision',
    columns: [
      text('study', 'Study'),
      text('what', 'What'),
      text('dtype', 'Dtype'),
      { key: 'finding', label: 'Finding', kind: 'text', align: 'right', emphasis: 'strong' },
    ],
    rows,
  };
}

function finding(study: string, what: string, row: Row, is: Row[string]): Row {
  const failed = row.status !== undefined && row.status !== 'ok';
  return { study, what, ...row, finding: failed ? null : is };
}

function ratioText({ gradientRatio }: Row): string {
  return `${formatRatio(Number(gradientRatio))} PyTorch's error`;
}

function lossText({ first, last, skipped }: Row): string {
  const left = Number(skipped) > 0 ? `, ${skipped} skipped` : '';
  return `${Number(first).toFixed(4)} to ${Number(last).toFixed(4)}${left}`;
}

function speedText({ medianMs, speedUp }: Row): string {
  const faster = typeof speedUp === 'number' ? `, ${formatRatio(speedUp)} the speed` : '';
  return `${formatDuration(Number(medianMs))}${faster}`;
}
