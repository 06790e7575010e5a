import { formatBytes, type Column, type Table } from '@roofline/reports';
import { configurationColumns, sharedCaption } from '../../../report/configuration-columns.ts';
import { memoryRow, nameOf, type MemoryMeasurement } from './interpret.ts';
import type { MemoryResult } from '../result.ts';

type MeasuredMemory = MemoryMeasurement & { readonly result: MemoryResult };

const bytes = (key: string, label: string, description?: string): Column => ({
  key,
  label,
  kind: 'bytes',
  ...(description === undefined ? {} : { description }),
});
/** What is compared across a row. */
const held = (key: string, label: string, description?: string): Column => ({
  ...bytes(key, label, description),
  unitGroup: 'held',
});
const text = (key: string, label: string): Column => ({ key, label, kind: 'text' });

const measuredColumns: Column[] = [
  { ...held('peakBytes', 'Peak', 'Most bytes allocated at once.'), emphasis: 'strong' },
  held('reservedBytes', 'Reserved', 'Most bytes that the allocator held of the system.'),
  {
    key: 'allocatedShare',
    label: 'Allocated',
    kind: 'percent',
    description: 'Peak over reserved: the rest is cached or lost between blocks.',
  },
  held('forwardBytes', 'Peak forward'),
  held('backwardBytes', 'Peak backward'),
  held('optimizerBytes', 'Peak optimizer'),
  held('stepBytes', 'Peak of a graph', 'A compiled step is one launch: its phases cannot be told apart.'),
  held('arenaBytes', 'Arena', 'What a compiled step works in, laid out before it runs.'),
  held('weightBytes', 'Weights'),
  {
    ...bytes('blockBytes', 'Saved by a block', 'What the tape keeps of one block for the backward pass.'),
    unitGroup: 'block',
  },
  {
    ...bytes('residualBytes', 'Residual stream', 'Batch × context × model dimension × bytes of its dtype.'),
    unitGroup: 'block',
  },
  {
    key: 'blockPerResidual',
    label: 'Block / residual',
    kind: 'ratio',
    description: 'What a block saves, in sizes of the residual stream.',
  },
  {
    key: 'recordingRatio',
    label: 'Recorded / plain',
    kind: 'ratio',
    description: 'Time of a step with recording on over that with it off.',
  },
];

/** One row a cell. */
export function sweepTable(measurements: readonly MemoryMeasurement[]): Table {
  const rows = measurements.map(memoryRow);
  return {
    kind: 'table',
    id: 'memory-sweep',
    title: 'Memory of one step',
    caption: sharedCaption(rows),
    columns: [
      ...configurationColumns(rows),
      ...measuredColumns.filter(({ key }) => rows.some((row) => row[key] !== undefined && row[key] !== null)),
    ],
    rows,
  };
}

/** What was live when each phase was at its peak. */
export function liveTable(measurement: MeasuredMemory): Table {
  const rows = measurement.result.phases.flatMap(({ phase, bytes: peak, live }) =>
    live.map(({ what, bytes: held, count }) => ({ phase, what, held, count, share: held / peak })),
  );
  return {
    kind: 'table',
    id: 'live-at-the-peak',
    title: 'What is live at the peak of each phase',
    caption: `${nameOf(measurement)}. An op of all layers is one row.`,
    columns: [
      text('phase', 'Phase'),
      text('what', 'What'),
      { key: 'count', label: 'Pieces', kind: 'number', digits: 1 },
      bytes('held', 'Size'),
      { key: 'share', label: 'Of the peak', kind: 'percent' },
    ],
    rows,
  };
}

export function largestTable(measurement: MeasuredMemory): Table {
  return {
    kind: 'table',
    id: 'largest-allocations',
    title: 'The largest allocations',
    caption: nameOf(measurement),
    columns: [
      bytes('bytes', 'Size'),
      text('phase', 'Phase'),
      text('op', 'Op'),
      text('tensor', 'Tensor'),
      text('range', 'Range'),
      text('origin', 'Origin'),
    ],
    rows: measurement.result.largest.map(({ stack, ...row }) => ({ ...row, origin: stack[0] ?? '' })),
  };
}

/** The largest of what one block saves; null where nothing is saved. */
export function savedTable(measurement: MeasuredMemory): Table | null {
  const { savedByBlock: saved, residual } = measurement.result;
  if (saved === null) return null;
  return {
    kind: 'table',
    id: 'saved-by-a-block',
    title: 'What one block saves for the backward pass',
    caption:
      `The largest of the ${saved.count} activations that ${saved.block} saves; ${nameOf(measurement)}.` +
      (saved.weightCastBytes > 0
        ? ` Its weights in the lower dtype, ${formatBytes(saved.weightCastBytes)}, are not among them.`
        : ''),
    columns: [
      text('op', 'Read by the gradient of'),
      text('tensor', 'Tensor'),
      bytes('bytes', 'Size'),
      { key: 'share', label: 'Of the block', kind: 'percent' },
      { key: 'residuals', label: 'In residual streams', kind: 'ratio' },
      text('range', 'Range'),
    ],
    rows: saved.contributors.map((row) => ({
      ...row,
      share: row.bytes / saved.bytes,
      residuals: row.bytes / residual.bytes,
    })),
  };
}
