import { formatBytes, type Table, type Block } from '@roofline/reports';
import { summarize } from '../../../measuring/statistics.ts';
import { tableOf, tablesOf, type ColumnOf } from '../../../report/declared-table.ts';
import type { Measured, Measurement } from '../../../report/measurement.ts';
import { column } from '../../../report/standard-columns.ts';
import { stepParameters } from '../../e2e/parameters.ts';
import type { MemoryCell } from '../parameters.ts';
import type { MemoryResult } from '../result.ts';

export type MemoryMeasurement = Measurement<MemoryCell, MemoryResult>;
export type MeasuredMemory = Measured<MemoryCell, MemoryResult>;

/** Time of a step with recording on over that with it off: medians. */
export function overheadRatio({ overhead }: MemoryResult): number {
  return summarize(overhead.onMs).median / summarize(overhead.offMs).median;
}

const filled = { shown: 'filled' } as const;
/** What is compared across a row. */
const held = { unitGroup: 'held', ...filled } as const;
const ofBlock = { unitGroup: 'block', ...filled } as const;

const peakOf =
  (phase: string) =>
  ({ result }: MeasuredMemory) =>
    result.phases.find((each) => each.phase === phase)?.bytes ?? null;

const columns: readonly ColumnOf<MeasuredMemory>[] = [
  column.bytes('peakBytes', 'Peak', {
    ...{ ...held, emphasis: 'strong', description: 'Most bytes allocated at once.' },
  }),
  column.bytes('reservedBytes', 'Reserved', ({ result }) => result.peakReservedBytes, {
    ...{ ...held, description: 'Most bytes that the allocator held of the system.' },
  }),
  column.percent('allocatedShare', 'Allocated', (each) => each.peakBytes! / each.result.peakReservedBytes, {
    ...{ ...filled, description: 'Peak over reserved: the rest is cached or lost between blocks.' },
  }),
  column.bytes('forwardBytes', 'Peak forward', peakOf('forward'), held),
  column.bytes('backwardBytes', 'Peak backward', peakOf('backward'), held),
  column.bytes('optimizerBytes', 'Peak optimizer', peakOf('optimizer'), held),
  column.bytes('stepBytes', 'Peak of a graph', peakOf('whole step'), {
    ...{ ...held, description: 'A compiled step is one launch: its phases cannot be told apart.' },
  }),
  column.bytes('arenaBytes', 'Arena', ({ result }) => result.arenaBytes || null, {
    ...{ ...held, description: 'What a compiled step works in, laid out before it runs.' },
  }),
  column.bytes('weightBytes', 'Weights', ({ result }) => result.weightBytes, held),
  column.bytes('blockBytes', 'Saved by a block', ({ result }) => result.savedByBlock?.bytes, {
    ...{ ...ofBlock, description: 'What the tape keeps of one block for the backward pass.' },
  }),
  column.bytes('gradientBytes', 'Gradients of a block', ({ result }) => result.gradientsOfBlock?.bytes, {
    ...{ ...ofBlock, description: "What the backward pass leaves of one block: its parameters' gradients." },
  }),
  column.bytes('residualBytes', 'Residual stream', ({ result }) => result.residual.bytes, {
    ...{ ...ofBlock, description: 'Batch × context × model dimension × bytes of its dtype.' },
  }),
  column.ratio('blockPerResidual', 'Block / residual', ({ result }) => blockPerResidual(result), {
    ...{ ...filled, description: 'What a block saves, in sizes of the residual stream.' },
  }),
  column.ratio('recordingRatio', 'Recorded / plain', ({ result }) => overheadRatio(result), {
    ...{ ...filled, description: 'Time of a step with recording on over that with it off.' },
  }),
];

/** Null where no block saves anything. */
export function blockPerResidual({ savedByBlock, residual }: MemoryResult): number | null {
  return savedByBlock ? savedByBlock.bytes / residual.bytes : null;
}

/** One row a cell. */
export function sweepTable(cells: readonly MemoryMeasurement[]): Table {
  return tableOf(
    {
      ...{ id: 'memory-sweep', title: 'Memory of one step', parameters: stepParameters, columns },
      facts: ({ result }) => ({
        ...{ otherHeldBytes: result.otherHeldBytes, savedBytes: result.savedBytes },
        ...{ allocations: result.allocationCount, snapshot: result.snapshot },
      }),
    },
    // Only rows with a result are asked for values.
    cells as readonly MeasuredMemory[],
  );
}

/** What was live when each phase of a step was at its peak. */
export function liveTable({ record, result, name }: MeasuredMemory): Table[] {
  const rows = result.phases.flatMap(({ phase, bytes: peakBytes, live }) =>
    live.map((share) => ({ record, cell: {}, phase, peakBytes, ...share })),
  );
  return tablesOf(
    {
      ...{ id: 'live-at-the-peak', title: 'What is live at the peak of each phase' },
      caption: `${name}. An op of all layers is one row.`,
      columns: [
        column.text('phase', 'Phase'),
        column.text('what', 'What'),
        column.number('count', 'Pieces', { digits: 1 }),
        column.bytes('held', 'Size', ({ bytes }) => bytes),
        column.percent('share', 'Of the peak', ({ bytes, peakBytes }) => bytes / peakBytes),
      ],
    },
    rows,
  );
}

export function largestTable({ record, result, name }: MeasuredMemory): Table[] {
  return tablesOf(
    {
      ...{ id: 'largest-allocations', title: 'The largest allocations', caption: name },
      columns: [
        column.bytes('bytes', 'Size'),
        column.text('phase', 'Phase'),
        column.text('op', 'Op'),
        column.text('tensor', 'Tensor'),
        column.text('range', 'Range'),
        column.text('origin', 'Origin', ({ stack }) => stack[0] ?? ''),
      ],
    },
    result.largest.map((allocation) => ({ record, cell: {}, ...allocation })),
  );
}

/** The largest of what one block of a step saves. */
export function savedTable({ record, result, name }: MeasuredMemory): Table[] {
  const { savedByBlock: saved, residual } = result;
  if (saved === null) return [];
  const casts =
    saved.weightCastBytes > 0
      ? ` Its weights in the lower dtype, ${formatBytes(saved.weightCastBytes)}, are not among them.`
      : '';
  return tablesOf(
    {
      ...{ id: 'saved-by-a-block', title: 'What one block saves for the backward pass' },
      caption: `The largest of the ${saved.count} activations that ${saved.block} saves; ${name}.${casts}`,
      columns: [
        column.text('op', 'Read by the gradient of'),
        column.text('tensor', 'Tensor'),
        column.bytes('bytes', 'Size'),
        column.percent('share', 'Of the block', ({ bytes }) => bytes / saved.bytes),
        column.ratio('residuals', 'In residual streams', ({ bytes }) => bytes / residual.bytes),
        column.text('range', 'Range'),
      ],
    },
    saved.contributors.map((contributor) => ({ record, cell: {}, ...contributor })),
  );
}

/** Whether the ops of a compiled step were recorded one by one. */
export function runsOpByOp({ cell, record }: MemoryMeasurement): boolean {
  return cell.execution !== 'eager' && record.environment.device.type === 'cpu';
}

/** A note on compiled steps on the CPU: ONNX Runtime does not report the memory that it takes in a graph. */
export function opByOpNotes(cells: readonly MemoryMeasurement[]): Block[] {
  if (!cells.some(runsOpByOp)) return [];
  const text =
    'On the CPU the ops of compiled steps ran one by one while they were recorded, so that what ONNX Runtime takes ' +
    'inside a graph is not reported.';
  return [{ kind: 'note', tone: 'warning', text }];
}
