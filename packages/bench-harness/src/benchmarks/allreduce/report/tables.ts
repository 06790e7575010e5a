import type { Table } from '@roofline/reports';
import { tableOf, tablesOf, type ColumnOf } from '../../../report/declared-table.ts';
import { column, ratioColumns } from '../../../report/standard-columns.ts';
import { countedBytes, factsOf, pieceCount, placements, root, type Placement } from '../operations.ts';
import { collectiveParameters } from '../parameters.ts';
import { mainOf, overPeer, sideName, timingOf, type CollectiveSide } from './measured.ts';
import { fitLatencyBandwidth, type LatencyBandwidth } from '../../../measuring/latency-bandwidth.ts';

type Column = ColumnOf<CollectiveSide>;
type Sides = readonly CollectiveSide[];

const inGiga = (value: number | undefined) => value && value / 1e9;
const inMicroseconds = (ms: number | undefined) => ms && ms * 1000;
const everyRow = { everyRow: true } as const;
const right = { align: 'right' } as const;

const nounOf: Readonly<Record<Placement, string>> = {
  'out-of-place': 'out of place',
  'in-place': 'in place',
};

/** The results of a placement. Those out of place come first, right after their time. */
function placementColumns(placement: Placement): Column[] {
  const noun = nounOf[placement];
  const where = placement === 'in-place' ? `, ${noun}` : '';
  const of = (side: CollectiveSide) => timingOf(side, placement);
  const gigabytes = { unit: 'GB/s', digits: 3, shown: 'filled' } as const;
  return [
    column.number(`${placement}-us`, `Time, ${noun}`, (side) => inMicroseconds(of(side)?.timeMs), {
      ...{ unit: 'µs', digits: 4, shown: 'filled' },
      description: 'Of a call on the slowest rank, the median of all samples.',
    }),
    column.number(
      `${placement}-algbw`,
      `algbw${where}`,
      (side) => inGiga(of(side)?.algorithmBandwidth),
      gigabytes,
    ),
    column.number(`${placement}-busbw`, `busbw${where}`, (side) => inGiga(of(side)?.busBandwidth), {
      ...{ ...gigabytes, emphasis: 'strong' },
      description: "What each link carries: algbw times nccl-tests' factor for the op and the ranks.",
    }),
    column.text(`${placement}-wrong`, `#wrong${where}`, (side) => of(side) && (of(side)!.wrong ?? 'N/A'), {
      ...{ ...right, shown: 'filled' },
      description: 'Elements that differ from what they should be, on all ranks together.',
    }),
  ];
}

const backend = column.text<Parameters<typeof sideName>[0]>('backend', 'Backend', sideName, {
  ...{ ...everyRow, emphasis: 'strong' },
});

const columns: readonly Column[] = [
  backend,
  ...placements.flatMap(placementColumns),
  column.number('meanUs', 'Mean of ranks', (side) => inMicroseconds(mainOf(side)?.meanMs), {
    ...{ unit: 'µs', digits: 4, description: 'The mean of all ranks instead of the slowest one.' },
  }),
  column.percent('roofShare', 'Of the roof', roofShare, {
    ...{ emphasis: 'roof', shown: 'filled' },
    description:
      'busbw over what a link reaches: of Gloo a plain copy between two sockets of the loopback, of NCCL sends of ' +
      '256 MiB between neighbours.',
  }),
  ...ratioColumns<CollectiveSide>('overPeer', 'Over PyTorch', overPeer, {
    description:
      'Our busbw over that of torch.distributed with the same backend, in turn: above 1 ours is faster.',
  }),
  // Those of nccl-tests.
  column.count('bytes', 'size', ({ cell }) => countedBytes(cell), { ...everyRow, unit: 'B' }),
  column.count('count', 'count', ({ cell }) => pieceCount(cell), { ...everyRow, unit: 'elements' }),
  column.text('type', 'Type', ({ cell }) => cell.dtype, everyRow),
  column.text('ncclType', 'type', ({ cell }) => ncclTypes[cell.dtype], everyRow),
  column.text('redop', 'redop', ({ cell }) => (factsOf[cell.op].reduces ? 'sum' : 'none'), everyRow),
  column.count('root', 'root', ({ cell }) => (factsOf[cell.op].hasRoot ? root : -1), everyRow),
];

const ncclTypes = {
  float32: 'float',
  float16: 'half',
  bfloat16: 'bfloat16',
  float64: 'double',
  int32: 'int32',
  int64: 'int64',
} as const;

/** Of a link's bandwidth; undefined where that is not known. */
export function roofShare(side: CollectiveSide): number | undefined {
  const [main, roof] = [mainOf(side), side.result?.roofBytesPerSecond];
  return main && roof ? main.busBandwidth / roof : undefined;
}

const { backend: _, bytes, dtype, ...names } = collectiveParameters;
const keysOf = (placement: Placement) =>
  ['us', 'algbw', 'busbw', 'wrong'].map((key) => `${placement}-${key}`);

/** One row a side of a cell. */
export function collectiveTable(sides: Sides): Table {
  const shows = [
    ...['backend', ...placements.flatMap(keysOf)],
    ...['meanUs', 'roofShare', 'overPeer', 'overPeerInterval'],
  ];
  const parameters = { ...names, bytes, dtype };
  return tableOf({ id: 'collectives', title: 'Collectives', parameters, columns, shows }, sides);
}

/** The columns of nccl-tests by their names there. */
export function ncclTestsTable(sides: Sides): Table {
  const shows = [
    ...['backend', 'bytes', 'count', 'ncclType', 'redop', 'root'],
    ...placements.flatMap((placement) =>
      keysOf(placement).map((key, index) => ({
        key,
        label: `${['time', 'algbw', 'busbw', '#wrong'][index]}${placement === 'in-place' ? ' (in-place)' : ''}`,
        shown: () => true,
      })),
    ),
  ];
  return tableOf(
    { id: 'nccl-tests', title: 'As nccl-tests print it', parameters: names, columns, shows },
    sides,
  );
}

const fitColumns: readonly ColumnOf<ReturnType<typeof fitsOf>[number]>[] = [
  backend,
  column.number('latencyUs', 'Latency α', ({ fit }) => fit.latencyMs * 1000, { unit: 'µs', digits: 3 }),
  column.number('bandwidth', 'Bandwidth 1/β', ({ fit }) => inGiga(fit.bytesPerSecond), {
    unit: 'GB/s',
    digits: 3,
  }),
  column.number('busBandwidth', 'On the bus', ({ fit }) => inGiga(fit.busBytesPerSecond), {
    ...{ unit: 'GB/s', digits: 3 },
  }),
];

/** Latency and bandwidth of each series of sizes. */
function fitsOf(sides: Sides) {
  const series = Map.groupBy(
    sides,
    ({ cell: { op, backend, ranks, dtype }, side }) => `${op} ${backend} ${ranks} ${dtype} ${side}`,
  );
  return [...series.values()].flatMap((group) => {
    const fit = fitOf(group);
    const { record, cell, side } = group[0]!;
    const { bytes: _, ...series } = cell;
    return fit ? [{ record, cell: series, side, fit }] : [];
  });
}

export function fitTable(sides: Sides): Table[] {
  return tablesOf(
    {
      ...{ id: 'latency-and-bandwidth', title: 'Latency and bandwidth' },
      caption: 'Time = latency + size / bandwidth, fitted to all sizes by their relative errors.',
      ...{ parameters: { ...names, dtype }, columns: fitColumns },
    },
    fitsOf(sides),
  );
}

/** The fit of sides that differ only in size, and the bus bandwidth that follows. */
function fitOf(
  sides: readonly CollectiveSide[],
): (LatencyBandwidth & { readonly busBytesPerSecond: number }) | null {
  const points = sides.flatMap((side) => {
    const main = mainOf(side);
    return main ? [{ bytes: countedBytes(side.cell), timeMs: main.timeMs }] : [];
  });
  const fit = fitLatencyBandwidth(points);
  const [first] = sides;
  if (!fit || !first) return null;
  const { op, ranks } = first.cell;
  return { ...fit, busBytesPerSecond: fit.bytesPerSecond * factsOf[op].busFactor(ranks) };
}
