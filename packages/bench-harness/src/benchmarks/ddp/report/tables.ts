import type { Table } from '@roofline/reports';
import { tableOf, tablesOf, type ColumnOf } from '../../../report/declared-table.ts';
import { measuredOf } from '../../../report/measurement.ts';
import { column } from '../../../report/standard-columns.ts';
import { firstLine } from '../../../report/values-in-words.ts';
import { ddpCellParameters, type DdpCell } from '../parameters.ts';
import {
  profiledOverlap,
  stateBytesByFormula,
  timesOf,
  type DdpMeasurement,
  type MeasuredDdp,
} from './measured.ts';

const filled = { shown: 'filled' } as const;

const columns: readonly ColumnOf<MeasuredDdp>[] = [
  { key: 'status', label: 'Status', kind: 'status', value: ({ record }) => record.status },
  column.ms('stepMs', 'Step', ({ time }) => time!.median, {
    ...{ ...filled, emphasis: 'strong', uncertaintyKey: 'stepStdMs' },
    description: 'Forward, backward and optimizer, on the slowest rank: the median.',
    deviation: ({ time }) => (time!.count > 1 ? time!.std : null),
  }),
  column.ms('peerMs', 'PyTorch', (each) => timesOf(each).peerMs, {
    ...filled,
    description:
      'The same step in PyTorch, in turn with ours: overlap by its DistributedDataParallel. Of sharded parameters after ours, by ' +
      'FSDP2, compiled block by block where ours is a program.',
  }),
  column.ratio('ratio', 'Ratio', ratioOf, { ...filled, description: 'Ours over PyTorch.' }),
  column.text('peerError', 'PyTorch failed', ({ result: { peer } }) => errorOf(peer), filled),
  column.ms('optimizerMs', 'Optimizer', (each) => timesOf(each).optimizerMs, {
    ...{ ...filled, description: 'Its step; a sharded one gathers the parameters in it.' },
  }),
  column.ms('communicationMs', 'Communication', (each) => timesOf(each).communicationMs, {
    ...{ ...filled, description: 'The reductions of one step with nothing alongside.' },
  }),
  column.ms('exposedMs', 'Exposed', (each) => timesOf(each).exposedMs, {
    ...{ ...filled, description: 'What they add to a forward and backward pass.' },
  }),
  column.percent('savedShare', 'Saved', (each) => timesOf(each).savedShare, {
    ...filled,
    description:
      '1 less exposed over communication; below 0 where overlapping communication and computation slows both.',
  }),
  column.percent('hiddenShare', 'Hidden', hiddenShare, {
    ...filled,
    description:
      'Of the communication of a profiled pass, the share of its time in which something was calculated on the same rank.',
  }),
  column.ms('coldStartMs', 'Cold start', ({ result }) => result.coldStartMs, {
    ...filled,
    description:
      'From the start of a rank to the end of its first step like those that are timed, built and compiled.',
  }),
  column.text('profileError', 'Profile failed', (each) => errorOf(profiledOverlap(each)), filled),
  column.number('busGigabytesPerSecond', 'Bus (GB/s)', (each) => timesOf(each).busGigabytesPerSecond, {
    ...{ ...filled, digits: 2 },
    description: 'Bytes of the gradients times 2(n-1)/n over the communication.',
  }),
  column.bytes(
    'peerPeakBytes',
    "PyTorch's peak",
    ({ result: { peer } }) => (peer?.status === 'ok' ? (peer.peakBytes ?? null) : null),
    {
      ...filled,
      description: 'Most bytes that its tensors held on a rank.',
    },
  ),
  column.number('buckets', 'Reductions', ({ result }) => result.bucketBytes.length, {
    ...{ ...filled, description: 'Calls of one step.' },
  }),
  column.bytes('copiedBytes', 'Copied', ({ result }) => result.copiedBytes, {
    ...filled,
    description:
      'Of the gradients of a pass, what was copied into its bucket; the others are written there at once.',
  }),
];

function ratioOf(each: MeasuredDdp): number | null {
  const { peerMs } = timesOf(each);
  return peerMs === null ? null : each.time!.median / peerMs;
}

/** Null where the overlap is not known. */
export function hiddenShare(each: MeasuredDdp): number | null {
  const overlap = profiledOverlap(each);
  return overlap?.status === 'ok' ? overlap.share : null;
}

function errorOf(
  outcome: { readonly status: 'ok' } | { readonly status: 'failed'; readonly error: string } | null,
): string | null {
  return outcome?.status === 'failed' ? firstLine(outcome.error) : null;
}

/** One row a cell. */
export function ddpTable(cells: readonly DdpMeasurement[]): Table {
  return tableOf(
    {
      ...{ id: 'ddp', title: 'Data-parallel training steps', parameters: ddpCellParameters, columns },
      facts: (each) => ({ gradientBytes: timesOf(each).gradientBytes }),
    },
    // Only rows with a result are asked for values.
    cells as readonly MeasuredDdp[],
  );
}

interface RankMemory {
  readonly cell: DdpCell;
  readonly parameterCount: number;
  readonly memory: MeasuredDdp['result']['memory'][number];
}

/** What is compared across a row. */
const held = (
  key: string,
  label: string,
  value: (rank: RankMemory) => number | null,
  description: string,
  shown?: 'filled',
) => column.bytes<RankMemory>(key, label, value, { unitGroup: 'held', description, ...(shown && { shown }) });

const rankColumns: readonly ColumnOf<RankMemory>[] = [
  column.number('rank', 'Rank', ({ memory }) => memory.rank),
  held(
    'builtBytes',
    'Built',
    ({ memory }) => memory.builtBytes ?? null,
    'Parameters, once the model is built and divided.',
    'filled',
  ),
  held(
    'beforeStepBytes',
    'Before the step',
    ({ memory }) => memory.beforeStepBytes,
    'Parameters, gradients, batch and buckets.',
  ),
  held(
    'afterStepBytes',
    'After it',
    ({ memory }) => memory.afterStepBytes,
    'And the state of the optimizer.',
  ),
  held(
    'stateBytes',
    'State',
    ({ memory }) => memory.afterStepBytes - memory.beforeStepBytes,
    'The difference.',
  ),
  held(
    'formulaBytes',
    'Formula',
    ({ cell, parameterCount }) => stateBytesByFormula(cell, parameterCount),
    'What it would be with an even share.',
  ),
  held(
    'peakBytes',
    'Peak',
    ({ memory }) => memory.peakBytes,
    'Most bytes allocated at once in the steps that followed.',
  ),
];

/** One row a rank of each cell. */
export function rankTable(cells: readonly DdpMeasurement[]): Table[] {
  const rows = measuredOf(cells).flatMap(({ record, cell, result: { memory, parameterCount } }) =>
    memory.map((memory) => ({ record, cell, parameterCount, memory })),
  );
  return tablesOf(
    {
      ...{ id: 'ddp-memory', title: 'Memory by rank', parameters: ddpCellParameters },
      caption:
        'Around the first step of the optimizer, which makes its state: 8 bytes a parameter for AdamW, divided by the ' +
        'ranks where it is sharded, whole parameters at a time, or exactly where the parameters are.',
      columns: rankColumns as readonly ColumnOf<(typeof rows)[number]>[],
    },
    rows,
  );
}
