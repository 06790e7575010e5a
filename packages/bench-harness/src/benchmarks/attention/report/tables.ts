import type { Table } from '@roofline/reports';
import type { Pass } from '../../../attention/work.ts';
import { besideEagerColumns, type BesideEager, type TimedWay } from '../../../report/beside-eager.ts';
import { tableOf, tablesOf, type ColumnOf, type RowItem } from '../../../report/declared-table.ts';
import { pairsBy } from '../../../report/measurement.ts';
import { column } from '../../../report/standard-columns.ts';
import { memoryNeed } from '../memory-formula.ts';
import { attentionParameters } from '../parameters.ts';
import { bothPasses, type AttentionResult } from '../result.ts';
import { timeOf, type AttentionMeasurement, type MeasuredAttention } from './measured.ts';

type Column = ColumnOf<MeasuredAttention>;
type Cells = readonly AttentionMeasurement[];

/** The columns of a pass; those of both together only next to programs, which run them so. */
function passColumns(pass: Pass, label: string): Column[] {
  const shown: Pick<Column, 'shown'> =
    pass === 'both' ? { shown: (cells) => cells.some(({ cell }) => cell.execution !== 'eager') } : {};
  return [
    {
      ...column.ms<MeasuredAttention>(`${pass}Ms`, label, (each) => timeOf(each, pass)?.time.mean, {
        ...{ uncertaintyKey: `${pass}StdMs`, qualifies: `${pass}MedianMs` },
        description:
          'Mean and standard deviation of the time between two events on the device around each pass.',
      }),
      ...shown,
      // One pass has no spread.
      deviation: (each) => {
        const time = timeOf(each, pass)?.time;
        return time && time.count > 1 ? time.std : null;
      },
    },
    column.ms(`${pass}MedianMs`, `${label}, median`, (each) => timeOf(each, pass)?.time.median, {
      ...{ emphasis: 'strong', ...shown },
    }),
    column.percent(`${pass}RoofShare`, `${label}, of the roof`, (each) => timeOf(each, pass)?.roofShare, {
      ...{ emphasis: 'roof', ...shown },
      description: 'The least time that the measured ceilings allow for this work, over the median.',
    }),
  ];
}

/** Null where the backward pass was timed by itself. */
function backwardByDifference(each: MeasuredAttention): number | null {
  if (timeOf(each, 'backward')) return null;
  return timeOf(each, 'both')!.time.median - timeOf(each, 'forward')!.time.median;
}

/** What is compared across a row. */
const held = { unitGroup: 'held' } as const;

const times: readonly Column[] = [
  ...passColumns('forward', 'Forward'),
  ...passColumns('backward', 'Backward'),
  column.ms('backwardDifferenceMs', 'Backward, by difference', backwardByDifference, {
    ...{ shown: 'filled' },
    description:
      'Of a compiled cell, whose program runs both passes as one: the median of both less that of the forward pass.',
  }),
  ...passColumns('both', 'Forward and backward'),
  column.bytes('beforeBackwardBytes', 'Before backward', ({ result }) => result.memory.beforeBackwardBytes, {
    ...held,
    description:
      'Bytes that tensors hold between the forward and the backward pass; of a program of both passes, by its schedule.',
  }),
  column.bytes('peakBytes', 'Peak memory', {
    ...{ ...held, description: 'Most bytes held by tensors at once, forward and backward.' },
  }),
];

/** What each cell needs by formula next to what was measured; also of cells that ran out of memory. */
const memory: readonly Column[] = [
  column.bytes('keptBytes', 'Kept for backward', ({ cell }) => memoryNeed(cell).keptBytes, {
    everyRow: true,
    description: 'By formula: the weights of plain attention, the statistics of each row of the others.',
  }),
  column.bytes(
    'neededBytes',
    'Before backward, by formula',
    ({ cell }) => memoryNeed(cell).beforeBackwardBytes,
    { ...held, everyRow: true, description: 'What is kept, q, k, v, the output and its gradient.' },
  ),
  column.ratio('beforeBackwardRatio', 'Before backward, measured / formula', ({ cell, result }) => {
    const { beforeBackwardBytes } = result.memory;
    return beforeBackwardBytes && beforeBackwardBytes / memoryNeed(cell).beforeBackwardBytes;
  }),
  column.bytes('neededPeakBytes', 'Peak, by formula', ({ cell }) => memoryNeed(cell).peakBytes, {
    ...{ ...held, everyRow: true },
  }),
  column.ratio('peakRatio', 'Peak, measured / formula', ({ cell, result }) => {
    const { peakBytes } = memoryNeed(cell);
    return peakBytes === null ? null : result.memory.peakAllocatedBytes / peakBytes;
  }),
];

const shared = {
  ...{ caption: 'Under a causal mask.', parameters: attentionParameters, columns: [...times, ...memory] },
  facts: (each: MeasuredAttention) => ({
    peakForwardBytes: each.result.memory.peakForwardBytes,
    ...Object.fromEntries(
      (['forward', 'backward', 'both'] as const).flatMap((pass) => {
        const time = timeOf(each, pass);
        return time ? [[`${pass}TeraflopsPerSecond`, time.flopsPerSecond / 1e12]] : [];
      }),
    ),
  }),
};

/** One row a cell: its times next to the roof's, and its memory. */
export function attentionTable(cells: Cells): Table {
  const shows = times.map(({ key }) => key);
  return tableOf(
    { id: 'pass-times', title: 'Attention, forward and backward', ...shared, shows },
    cells as readonly MeasuredAttention[],
  );
}

export function memoryTable(cells: Cells): Table[] {
  const shows = [
    ...['keptBytes', 'neededBytes', { key: 'beforeBackwardBytes', label: 'Before backward, measured' }],
    ...['beforeBackwardRatio', 'neededPeakBytes', { key: 'peakBytes', label: 'Peak, measured' }, 'peakRatio'],
  ];
  return tablesOf(
    { id: 'memory-need', title: 'Memory by formula and as measured', ...shared, shows },
    cells as readonly MeasuredAttention[],
  );
}

/** What a program is made of: its backward pass cannot be separated. */
const passes = { forward: 'forward', both: 'forward and backward' } as const satisfies Partial<
  Record<Pass, string>
>;

/** A pass of a compiled cell, and the same run eagerly. */
export interface CompiledPass extends BesideEager, RowItem {
  readonly cell: AttentionMeasurement['cell'];
  readonly pass: string;
}

export function compiledPasses(cells: Cells): CompiledPass[] {
  return pairsBy(cells, 'execution', 'eager').flatMap(({ cell: compiled, beside: eager }) =>
    (['forward', 'both'] as const).map((pass) => ({
      ...{ record: compiled.record, cell: compiled.cell, pass: passes[pass] },
      ...{ eager: wayOf(eager.result, pass), compiled: wayOf(compiled.result, pass) },
      compilation: compiled.result.compilation?.[pass] ?? null,
    })),
  );
}

/** Compiled attention compared with eager, pass by pass, where a shape was measured both ways. */
export function compiledTable(cells: Cells): Table[] {
  return tablesOf<CompiledPass>(
    {
      ...{ id: 'compiled-beside-eager', title: 'Compiled vs eager', parameters: attentionParameters },
      caption: 'Eager forward and backward are the sum of the two.',
      columns: [column.text('pass', 'Pass'), ...besideEagerColumns],
    },
    compiledPasses(cells),
  );
}

function wayOf(result: AttentionResult, pass: keyof typeof passes): TimedWay {
  const { peakForwardBytes, peakAllocatedBytes } = result.memory;
  return pass === 'forward'
    ? { ...result.forward, peakBytes: peakForwardBytes }
    : { ...bothPasses(result), peakBytes: peakAllocatedBytes };
}
