import { formatDuration, type Plot, type Table } from '@roofline/reports';
import { tableOf, type ColumnOf, type RowItem } from '../../report/declared-table.ts';
import { measuredOf, type Measured, type Measurement } from '../../report/measurement.ts';
import { plotsOf, seriesOf } from '../../report/series.ts';
import { column } from '../../report/standard-columns.ts';
import { describeShape } from '../../attention/shape.ts';
import { attentionFlops } from '../../attention/work.ts';
import { tileParameters, type TileCell, type TileResult } from './parameters.ts';

type TileMeasurement = Measurement<TileCell, TileResult>;
type Cells = readonly TileMeasurement[];
type Tile = Measured<TileCell, TileResult>;

const kernelOf = ({ result }: Tile) => (result.status === 'ok' ? result.kernel : null);
const filled = { shown: 'filled' } as const;

const columns: readonly ColumnOf<Tile>[] = [
  column.ms('medianMs', 'Forward', ({ time }) => time?.median, { emphasis: 'strong' }),
  column.number(
    'teraflopsPerSecond',
    'Achieved',
    ({ time, cell }) => time && attentionFlops(cell, 'forward') / time.median / 1e9,
    { unit: 'TFLOP/s', digits: 3 },
  ),
  column.bytes('sharedBytes', 'Shared memory', (tile) => kernelOf(tile)?.sharedBytes, {
    ...{ ...filled, description: 'Of a block of threads.' },
  }),
  column.number('registersPerThread', 'Registers', (tile) => kernelOf(tile)?.registersPerThread, {
    ...{ ...filled, description: 'Of a thread, which has at most 255.' },
  }),
  column.bytes('localBytesPerThread', 'Spilled', (tile) => kernelOf(tile)?.localBytesPerThread, {
    ...{ ...filled, description: 'Of a thread, what had no room in registers.' },
  }),
  column.number('threads', 'Threads', (tile) => kernelOf(tile)?.threads, filled),
];

/** One row a tile; of one that does not fit, why. */
export function tileTable(cells: Cells): Table {
  const rows = (cells as readonly Tile[]).map((tile): Tile & Partial<RowItem> =>
    tile.result?.status === 'does-not-fit'
      ? { ...tile, outcome: { status: 'not-available', error: tile.result.reason } }
      : tile,
  );
  return tableOf<Tile & RowItem>(
    { ...{ id: 'tiles', title: 'Forward pass by tile' }, parameters: tileParameters, columns },
    rows,
  );
}

/** A line a number of keys, by queries, for each shape. */
export function tilePlots(cells: Cells): Plot[] {
  const shapes = Map.groupBy(timed(cells), ({ cell }) => describeShape(cell));
  return [...shapes].flatMap(([name, of]) =>
    plotsOf({
      ...{
        id: `tiles-${name.replace(/[^\w.]+/g, '-')}`,
        title: `Forward pass by tile: ${name}`,
        marks: 'line',
      },
      x: { label: 'Queries of a tile', scale: 'log' },
      y: { label: 'Time', unit: 'ms', scale: 'log' },
      series: seriesOf(
        {
          name: ({ cell }) => `${cell.tileKeys} keys`,
          x: ({ cell }) => cell.tileQueries,
          y: ({ time }) => time!.median,
        },
        of,
      ),
    }),
  );
}

/** The fastest and the slowest tile of each shape, and how many have no room. */
export function tileFindings(cells: Cells): string[] {
  const shapes = [...Map.groupBy(cells, ({ cell }) => describeShape(cell))];
  return shapes.flatMap(([name, all]) => {
    const of = timed(all).toSorted((a, b) => a.time!.median - b.time!.median);
    const [fastest, slowest] = [of[0], of.at(-1)];
    if (!fastest || !slowest) return [];
    const said = ({ cell, time }: Tile) =>
      `${cell.tileQueries} × ${cell.tileKeys} with **${formatDuration(time!.median)}**`;
    const left = all.filter(({ result }) => result?.status === 'does-not-fit').length;
    return [
      `Of tiles of queries × keys ${said(fastest)} is the fastest, ${said(slowest)} the slowest` +
        `${left > 0 ? `, and ${left} of ${all.length} do not fit` : ''} (${name}).`,
    ];
  });
}

function timed(cells: Cells): Tile[] {
  return measuredOf(cells).filter(({ time }) => time !== null);
}
