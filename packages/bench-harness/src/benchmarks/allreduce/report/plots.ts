import type { Plot, Point, Series } from '@roofline/reports';
import { factsOf } from '../operations.ts';
import type { CollectiveMeasurement, Measured } from './interpret.ts';
import { sideName, sizeInWords } from './words.ts';

const giga = 1e9;

type Value = (measured: Measured) => Omit<Point, 'x'>;

const timeOf: Value = ({ timeMs, lowMs, highMs }) => ({ y: timeMs, low: lowMs, high: highMs });

/** Time and bus bandwidth against size, a plot for each op, dtype and number of ranks. */
export function sizePlots(measurements: readonly CollectiveMeasurement[]): Plot[] {
  const groups = Map.groupBy(measurements, ({ cell: { op, dtype, ranks } }) => `${op}-${dtype}-${ranks}`);
  return [...groups].flatMap(([id, group]): Plot[] => {
    const { op, dtype, ranks } = group[0]!.cell;
    const title = `${op}, ${ranks} ranks, ${dtype}, ${factsOf[op].compared}`;
    const x = { label: 'Size', unit: 'MB', scale: 'log' } as const;
    const series = (value: Value) => seriesOf(group, ({ bytes }) => bytes / 1e6, value);
    if (series(timeOf).length === 0) return [];
    const roof = group.find(({ roofBytesPerSecond }) => roofBytesPerSecond !== null)?.roofBytesPerSecond;
    return [
      {
        ...{ kind: 'plot', id: `time-by-size-${id}`, title: `Time by size: ${title}`, x, marks: 'line' },
        caption: 'Of the slowest rank: medians; error bars from a fifth of the samples to four fifths.',
        y: { label: 'Time', unit: 'ms', scale: 'log' },
        series: series(timeOf),
      },
      {
        ...{
          kind: 'plot',
          id: `busbw-by-size-${id}`,
          title: `Bus bandwidth by size: ${title}`,
          x,
          marks: 'line',
        },
        y: { label: 'busbw', unit: 'GB/s', scale: 'linear' },
        series: series(({ busBandwidth }) => ({ y: busBandwidth / giga })),
        ...(roof && { references: [{ label: 'what a link reaches', y: roof / giga }] }),
      },
    ];
  });
}

/** Time against the number of ranks, for each size; none where there is only one number. */
export function rankPlots(measurements: readonly CollectiveMeasurement[]): Plot[] {
  const groups = Map.groupBy(measurements, ({ cell: { op, dtype, bytes } }) => `${op}-${dtype}-${bytes}`);
  return [...groups].flatMap(([id, group]): Plot[] => {
    const { op, dtype, bytes } = group[0]!.cell;
    const series = seriesOf(group, ({ ranks }) => ranks, timeOf);
    if (new Set(group.map(({ cell }) => cell.ranks)).size < 2 || series.length === 0) return [];
    return [
      {
        kind: 'plot',
        id: `time-by-ranks-${id}`,
        title: `Time by ranks: ${op}, ${sizeInWords(bytes)}, ${dtype}`,
        caption: 'Of the slowest rank: medians; error bars from a fifth of the samples to four fifths.',
        x: { label: 'Ranks', scale: 'linear' },
        y: { label: 'Time', unit: 'ms', scale: 'linear' },
        marks: 'line',
        series,
      },
    ];
  });
}

function seriesOf(
  group: readonly CollectiveMeasurement[],
  x: (cell: CollectiveMeasurement['cell']) => number,
  value: Value,
): Series[] {
  const bySide = Map.groupBy(group, ({ cell, side }) => sideName(cell, side));
  return [...bySide].flatMap(([name, measurements]) => {
    const points = measurements
      .map(({ cell, main, record, problem }): Point => {
        if (main) return { x: x(cell), ...value(main) };
        return { x: x(cell), y: null, note: problem?.status ?? record.status };
      })
      .toSorted((a, b) => Number(a.x) - Number(b.x));
    return points.some(({ y }) => y !== null) ? [{ name, points }] : [];
  });
}
