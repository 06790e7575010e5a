import type { Plot, Point, Series } from '@roofline/reports';
import { max, min } from 'simple-statistics';
import { outcomeOf, type RowItem } from './declared-table.ts';
import { statusInWords } from './values-in-words.ts';

/** A value of a plot, with the ends of its error bar where it has one. */
export type PlottedValue = number | null | undefined | Omit<Point, 'x'>;

/** What series show of items, and how they are named. */
export interface SeriesOf<Item> {
  /** The series of an item; without it there is one for all. */
  readonly name?: (item: Item) => string;
  readonly x: (item: Item) => string | number;
  /** What is shown of a measured item: one value, or several by the names of their series. Without a value there is no point. */
  readonly y: ((item: Item) => PlottedValue) | Readonly<Record<string, (item: Item) => PlottedValue>>;
}

/** One series for each name; gaps say why they are there, and a series without any value is none. */
export function seriesOf<Item extends RowItem>(
  { name, x, y }: SeriesOf<Item>,
  items: readonly Item[],
): Series[] {
  const lines = typeof y === 'function' ? [['', y] as const] : Object.entries(y);
  const groups = Map.groupBy(items, (item) => name?.(item) ?? '');
  return lines.flatMap(([line, value]) =>
    [...groups].flatMap(([group, members]) => {
      const points = members.flatMap((item) => pointOf(item, x(item), value));
      const isEmpty = points.every((point) => point.y === null);
      return isEmpty ? [] : [{ name: [group, line].filter(Boolean).join(', '), points }];
    }),
  );
}

function pointOf<Item extends RowItem>(
  item: Item,
  x: string | number,
  value: (item: Item) => PlottedValue,
): Point[] {
  const { status = 'ok' } = item.outcome ?? outcomeOf(item.record);
  if (status !== 'ok') return [{ x, y: null, note: statusInWords(status) }];
  const found = value(item);
  if (found === null || found === undefined) return [];
  return [typeof found === 'number' ? { x, y: found } : { x, ...found }];
}

/** A plot; none where nothing is shown, or bars of one category alone, which a table says better. */
export function plotsOf(plot: Omit<Plot, 'kind'>): Plot[] {
  const places = new Set(plot.series.flatMap(({ points }) => points.map(({ x }) => x)));
  const isPoor = plot.marks === 'bar' || plot.marks === 'dot' ? places.size < 2 : places.size === 0;
  return isPoor ? [] : [{ kind: 'plot', ...plot }];
}

/** Whether values lie so far apart that a linear axis hides the least: on it bars below a fiftieth of the longest cannot be seen. */
export function liesFarApart(series: readonly Series[], times = 50): boolean {
  const values = series.flatMap(({ points }) => points.flatMap(({ y }) => y ?? []));
  return values.length > 0 && max(values) > times * min(values);
}
