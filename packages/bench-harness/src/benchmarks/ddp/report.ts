import {
  type Column,
  type Plot,
  type Report,
  type Row,
  type Table,
  formatDuration,
  formatPercent,
} from '@roofline/reports';
import type { CellRecord } from '../../records/record.ts';
import { outcomeOf, plainParameters } from '../../report/cell-row.ts';
import { distinctNames } from '../../report/distinct-names.ts';
import { parameterColumn } from '../../report/parameter-titles.ts';
import { reportHead } from '../../report/report-head.ts';
import { firstLine } from '../../report/values-in-words.ts';
import { type DdpMeasurement, type DdpRecord, interpretDdp, stateBytesByFormula } from './interpret.ts';
import { describeDdpCell } from './parameters.ts';

const text = (key: string, label: string): Column => ({ key, label, kind: 'text' });
const duration = (key: string, label: string, description: string): Column => ({
  key,
  label,
  unit: 'ms',
  kind: 'duration',
  description,
});
const bytes = (key: string, label: string, description: string): Column => ({
  key,
  label,
  kind: 'bytes',
  description,
});

/** What is compared across a row. */
const held = (key: string, label: string, description: string): Column => ({
  ...bytes(key, label, description),
  unitGroup: 'held',
});

const cellColumns: readonly Column[] = [
  parameterColumn('size'),
  parameterColumn('context', 'number'),
  { ...parameterColumn('batch', 'number'), description: 'Of each rank.' },
  parameterColumn('dtype'),
  parameterColumn('optimizer'),
  parameterColumn('worldSize', 'number'),
  parameterColumn('mode'),
  { key: 'status', label: 'Status', kind: 'status' },
];

const timeColumns: readonly Column[] = [
  {
    ...duration('stepMs', 'Step', 'Forward, backward and optimizer, on the slowest rank: the median.'),
    emphasis: 'strong',
    uncertaintyKey: 'stepStdMs',
  },
  duration(
    'peerMs',
    'PyTorch',
    'The same step in PyTorch, in turn with ours: overlap by its DistributedDataParallel.',
  ),
  { key: 'ratio', label: 'Ratio', kind: 'ratio', description: 'Ours over PyTorch.' },
  text('peerError', 'PyTorch failed'),
  duration('optimizerMs', 'Optimizer', 'Its step; a sharded one gathers the parameters in it.'),
  duration('communicationMs', 'Communication', 'The reductions of one step with nothing alongside.'),
  duration('exposedMs', 'Exposed', 'What they add to a forward and backward pass.'),
  {
    key: 'savedShare',
    label: 'Saved',
    kind: 'percent',
    description:
      '1 less exposed over communication; below 0 where overlapping communication and computation slows both.',
  },
  {
    key: 'hiddenShare',
    label: 'Hidden',
    kind: 'percent',
    description:
      'Of the communication of a profiled pass, the share of its time in which something was calculated on the same rank.',
  },
  text('profileError', 'Profile failed'),
  {
    key: 'busGigabytesPerSecond',
    label: 'Bus (GB/s)',
    kind: 'number',
    digits: 2,
    description: 'Bytes of the gradients times 2(n-1)/n over the communication.',
  },
  { key: 'buckets', label: 'Reductions', kind: 'number', description: 'Calls of one step.' },
  bytes(
    'copiedBytes',
    'Copied',
    'Of the gradients of a pass, what was copied into its bucket; the others are written there at once.',
  ),
];

/** One row a cell. */
export function ddpTable(records: readonly CellRecord[]): Table {
  const rows = records.map(interpretDdp).map(timeRow);
  const isFilled = ({ key }: Column) => rows.some((row) => row[key] !== undefined && row[key] !== null);
  return {
    kind: 'table',
    id: 'ddp',
    title: 'Data-parallel training steps',
    columns: [...cellColumns, ...timeColumns.filter(isFilled)],
    rows,
  };
}

function cellRow({ record }: DdpRecord): Row {
  return { ...plainParameters(record), ...outcomeOf(record) };
}

function timeRow(measurement: DdpRecord): Row {
  const row = cellRow(measurement);
  if (!measurement.measured) return row;
  const { result, overlap, ...figures } = measurement.measured;
  const { copiedBytes } = result;
  return {
    ...{ ...row, ...figures, copiedBytes, buckets: result.bucketBytes.length },
    peerError: result.peer?.status === 'failed' ? firstLine(result.peer.error) : null,
    hiddenShare: overlap?.status === 'ok' ? overlap.share : null,
    profileError: overlap?.status === 'failed' ? firstLine(overlap.error) : null,
  };
}

/** One row a rank of each cell. */
export function rankTable(records: readonly CellRecord[]): Table {
  return {
    kind: 'table',
    id: 'ddp-memory',
    title: 'Memory by rank',
    caption:
      'Around the first step of the optimizer, which makes its state: 8 bytes a parameter for AdamW, divided by the ' +
      'ranks where it is sharded, whole parameters at a time.',
    columns: [
      ...cellColumns.filter(({ key }) => key !== 'status'),
      { key: 'rank', label: 'Rank', kind: 'number' },
      held('beforeStepBytes', 'Before the step', 'Parameters, gradients, batch and buckets.'),
      held('afterStepBytes', 'After it', 'And the state of the optimizer.'),
      held('stateBytes', 'State', 'The difference.'),
      held('formulaBytes', 'Formula', 'What it would be with an even share.'),
      held('peakBytes', 'Peak', 'Most bytes allocated at once in the steps that followed.'),
    ],
    rows: records.map(interpretDdp).flatMap(memoryRows),
  };
}

function memoryRows({ cell, record, measured }: DdpRecord): Row[] {
  if (!measured) return [];
  const { memory, parameterCount } = measured.result;
  return memory.map((rank) => ({
    ...plainParameters(record),
    ...rank,
    stateBytes: rank.afterStepBytes - rank.beforeStepBytes,
    formulaBytes: stateBytesByFormula(cell, parameterCount),
  }));
}

export function ddpReport(records: readonly CellRecord[]): Report {
  const measured = records.map(interpretDdp).flatMap(measuredOf);
  return {
    ...reportHead('Data-parallel training', records),
    summary: measured.map(stepSentence),
    sections: [
      {
        id: 'ddp-results',
        title: 'Steps',
        text: [
          'Each step is timed on each rank, all beginning together, and counts as its slowest rank has it. Passes with ' +
            'and without communication run in turn.',
          ...overlapText(measured),
        ],
        blocks: [ddpTable(records), ...(measured.length > 0 ? [timePlot(measured)] : [])],
      },
      ...(measured.length > 0 ? [{ id: 'ddp-ranks', title: 'Memory', blocks: [rankTable(records)] }] : []),
    ],
  };
}

type Measured = DdpRecord & { readonly measured: DdpMeasurement };

function measuredOf(measurement: DdpRecord): Measured[] {
  return measurement.measured ? [measurement as Measured] : [];
}

/** Where the profile of a pass has its communication from. */
function overlapText(measurements: readonly Measured[]): string[] {
  const sources = new Set(
    measurements.flatMap(({ measured: { overlap } }) =>
      overlap?.status === 'ok' ? [overlap.communication] : [],
    ),
  );
  return [...sources].map(
    (source) =>
      'After them one pass is profiled on each rank. Its communication is ' +
      (source === 'kernels'
        ? "NCCL's kernels, as CUPTI records them on their stream, those that wait for another rank too; "
        : "the works of Gloo's threads, each from when all ranks had come to its end; ") +
      'what of its time lies inside kernels of other streams, or on the CPU inside ops, is **hidden**.',
  );
}

function stepSentence({ cell, measured }: Measured): string {
  const { stepMs, communicationMs, exposedMs, savedShare, overlap } = measured;
  const communication =
    savedShare === null
      ? ''
      : `; its communication takes ${formatDuration(communicationMs)} alone and adds ${formatDuration(exposedMs)}`;
  const hidden =
    overlap?.status === 'ok' ? `; ${formatPercent(overlap.share)} of it ran alongside computation` : '';
  return `${describeDdpCell(cell)}: a step takes **${formatDuration(stepMs)}**${communication}${hidden}.`;
}

function timePlot(measurements: readonly Measured[]): Plot {
  const { names, shared } = distinctNames(measurements.map(({ cell }) => describeDdpCell(cell)));
  const points = (of: (measured: DdpMeasurement) => number) =>
    measurements.map(({ measured }, i) => ({ x: names[i]!, y: of(measured) }));
  return {
    kind: 'plot',
    id: 'ddp-times',
    title: 'Time of a step and of its communication',
    ...(shared === '' ? {} : { caption: `Medians: ${shared}.` }),
    x: { label: 'Cell', scale: 'category' },
    y: { label: 'Time', unit: 'ms', scale: 'linear' },
    marks: 'bar',
    series: [
      { name: 'step', points: points(({ stepMs }) => stepMs) },
      { name: 'communication alone', points: points(({ communicationMs }) => communicationMs) },
      { name: 'exposed', points: points(({ exposedMs }) => exposedMs) },
    ],
  };
}
