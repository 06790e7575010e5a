import type { Column, Row, Table } from '@roofline/reports';
import { formatInterval } from '../../../measuring/statistics.ts';
import { outcomeOf } from '../../../report/cell-row.ts';
import { type Placement, countedBytes, factsOf, pieceCount, placements, root } from '../operations.ts';
import { fitOf } from './fit.ts';
import type { CollectiveMeasurement, Measured } from './interpret.ts';
import { sideName, sizeInWords } from './words.ts';

const giga = 1e9;

const names: readonly Column[] = [
  { key: 'op', label: 'Op', kind: 'text' },
  { key: 'backend', label: 'Backend', kind: 'text', emphasis: 'strong' },
  { key: 'ranks', label: 'Ranks', kind: 'text' },
];

const nounOf: Readonly<Record<Placement, string>> = {
  'out-of-place': 'out of place',
  'in-place': 'in place',
};

function bandwidthColumns(placement: Placement): Column[] {
  const noun = nounOf[placement];
  // Those out of place come first, right after their time.
  const where = placement === 'in-place' ? `, ${noun}` : '';
  return [
    {
      key: `${placement}-us`,
      label: `Time, ${noun}`,
      unit: 'µs',
      kind: 'number',
      digits: 4,
      description: 'Of a call on the slowest rank, the median of all samples.',
    },
    { key: `${placement}-algbw`, label: `algbw${where}`, unit: 'GB/s', kind: 'number', digits: 3 },
    {
      key: `${placement}-busbw`,
      label: `busbw${where}`,
      unit: 'GB/s',
      kind: 'number',
      digits: 3,
      emphasis: 'strong',
      description: "What each link carries: algbw times nccl-tests' factor for the op and the ranks.",
    },
    {
      key: `${placement}-wrong`,
      label: `#wrong${where}`,
      kind: 'text',
      align: 'right',
      description: 'Elements that differ from what they should be, on all ranks together.',
    },
  ];
}

const besideColumns: readonly Column[] = [
  {
    key: 'meanUs',
    label: 'Mean of ranks',
    unit: 'µs',
    kind: 'number',
    digits: 4,
    description: 'The mean of all ranks instead of the slowest one.',
  },
  {
    key: 'roofShare',
    label: 'Of the roof',
    kind: 'percent',
    emphasis: 'roof',
    description:
      'busbw over what a link reaches: of Gloo a plain copy between two sockets of the loopback, of NCCL sends of ' +
      '256 MiB between neighbours.',
  },
  {
    key: 'overPeer',
    label: 'Over PyTorch',
    kind: 'ratio',
    emphasis: 'strong',
    description:
      'Our busbw over that of torch.distributed with the same backend, in turn: above 1 ours is faster.',
  },
  {
    key: 'overPeerInterval',
    label: '95 % interval',
    kind: 'text',
    align: 'right',
    qualifies: 'overPeer',
  },
];

/** One row a side of a cell; columns only where they are not empty. */
export function collectiveTable(measurements: readonly CollectiveMeasurement[]): Table {
  const rows = measurements.map(rowOf);
  const isFilled = ({ key }: Column) => rows.some((row) => row[key] !== undefined && row[key] !== null);
  const dtype: Column = { key: 'type', label: 'Type', kind: 'text' };
  return {
    kind: 'table',
    id: 'collectives',
    title: 'Collectives',
    columns: [
      ...names,
      { key: 'size', label: 'Size', kind: 'text', align: 'right' },
      dtype,
      ...[...placements.flatMap(bandwidthColumns), ...besideColumns].filter(isFilled),
    ],
    rows,
  };
}

/** The columns of nccl-tests by their names there. */
export function ncclTestsTable(measurements: readonly CollectiveMeasurement[]): Table {
  const labelled = (placement: Placement) =>
    bandwidthColumns(placement).map((column, i): Column => ({
      ...column,
      label: `${['time', 'algbw', 'busbw', '#wrong'][i]}${placement === 'in-place' ? ' (in-place)' : ''}`,
    }));
  return {
    kind: 'table',
    id: 'nccl-tests',
    title: 'As nccl-tests print it',
    columns: [
      ...names,
      { key: 'bytes', label: 'size', unit: 'B', kind: 'text', align: 'right' },
      { key: 'count', label: 'count', unit: 'elements', kind: 'text', align: 'right' },
      { key: 'ncclType', label: 'type', kind: 'text' },
      { key: 'redop', label: 'redop', kind: 'text' },
      { key: 'root', label: 'root', kind: 'text', align: 'right' },
      ...placements.flatMap(labelled),
    ],
    rows: measurements.map(rowOf),
  };
}

const ncclTypes = {
  float32: 'float',
  float16: 'half',
  bfloat16: 'bfloat16',
  float64: 'double',
  int32: 'int32',
  int64: 'int64',
} as const;

function rowOf(measurement: CollectiveMeasurement): Row {
  const { cell, record, side, measured, main, roofBytesPerSecond, overPeer, problem } = measurement;
  const { reduces, hasRoot } = factsOf[cell.op];
  return {
    op: cell.op,
    backend: sideName(cell, side),
    ranks: cell.ranks,
    size: sizeInWords(cell.bytes),
    bytes: countedBytes(cell),
    count: pieceCount(cell),
    type: cell.dtype,
    ncclType: ncclTypes[cell.dtype],
    redop: reduces ? 'sum' : 'none',
    root: hasRoot ? root : -1,
    ...outcomeOf(record),
    ...(problem ? { status: problem.status, error: problem.message } : {}),
    ...Object.assign({}, ...placements.map((placement) => cellsOf(placement, measured[placement]))),
    meanUs: main && main.meanMs * 1000,
    roofShare: main && roofBytesPerSecond && main.busBandwidth / roofBytesPerSecond,
    overPeer: overPeer?.ratio,
    overPeerInterval: overPeer && formatInterval(overPeer),
  };
}

function cellsOf(placement: Placement, measured: Measured | undefined): Row {
  if (!measured) return {};
  return {
    [`${placement}-us`]: measured.timeMs * 1000,
    [`${placement}-algbw`]: measured.algorithmBandwidth / giga,
    [`${placement}-busbw`]: measured.busBandwidth / giga,
    [`${placement}-wrong`]: measured.wrong ?? 'N/A',
  };
}

/** Latency and bandwidth of each series of sizes. */
export function fitTable(groups: readonly (readonly CollectiveMeasurement[])[]): Table | null {
  const rows = groups.flatMap((group): Row[] => {
    const fit = fitOf(group);
    const [first] = group;
    if (!fit || !first) return [];
    const { cell, side } = first;
    return [
      {
        op: cell.op,
        backend: sideName(cell, side),
        ranks: cell.ranks,
        type: cell.dtype,
        latencyUs: fit.latencyMs * 1000,
        bandwidth: fit.bytesPerSecond / giga,
        busBandwidth: fit.busBytesPerSecond / giga,
      },
    ];
  });
  if (rows.length === 0) return null;
  return {
    kind: 'table',
    id: 'latency-and-bandwidth',
    title: 'Latency and bandwidth',
    caption: 'Time = latency + size / bandwidth, fitted to all sizes by their relative errors.',
    columns: [
      ...names,
      { key: 'type', label: 'Type', kind: 'text' },
      { key: 'latencyUs', label: 'Latency α', unit: 'µs', kind: 'number', digits: 3 },
      { key: 'bandwidth', label: 'Bandwidth 1/β', unit: 'GB/s', kind: 'number', digits: 3 },
      { key: 'busBandwidth', label: 'On the bus', unit: 'GB/s', kind: 'number', digits: 3 },
    ],
    rows,
  };
}
