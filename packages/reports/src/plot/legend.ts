import type { DrawnPlot } from './defaults.ts';
import { twinOf } from './twins.ts';
import { textWidth } from './text-width.ts';

const SYMBOL = 16;
const GAP = 18;
export const LEGEND_LINE = 20;

/** What a mark stands for. */
export interface NamedItem {
  /** The place of its series; null for a level to compare with, which has its `y`. */
  readonly series: number | null;
  readonly label: string;
  readonly y?: number;
}

export interface LegendItem extends NamedItem {
  /** Pixels from the left of the image, and from its top to the middle of the line. */
  readonly left: number;
  readonly top: number;
}

/** What has a name of its own: series, and levels to compare with. */
export function namedItems(plot: DrawnPlot): NamedItem[] {
  const [first] = plot.series;
  const only = plot.series.length === 1 ? seriesLabel(plot, 0) : '';
  const isNamed = plot.series.length > 1 || (first !== undefined && only !== first.name);
  return [
    ...(isNamed ? plot.series.map((_, series) => ({ series, label: seriesLabel(plot, series) })) : []),
    ...(plot.references ?? []).map(({ label, y }) => ({ series: null, label, y })),
  ];
}

/** Names of what has no room for them at its end. */
export function layOutLegend(
  plot: DrawnPlot,
  width: number,
  start: number,
  titleHeight: number,
): LegendItem[] {
  let left = start;
  let top = titleHeight + LEGEND_LINE / 2;
  return namedItems(plot).map((item) => {
    const itemWidth = SYMBOL + textWidth(item.label) + GAP;
    if (left > start && left + itemWidth > width) {
      left = start;
      top += LEGEND_LINE;
    }
    const placed = { ...item, left, top };
    left += itemWidth;
    return placed;
  });
}

/** A series' name, where it has no values and why, and whose line it lies on. */
function seriesLabel(plot: DrawnPlot, index: number): string {
  const { name, points } = plot.series[index]!;
  if (plot.marks !== 'line' && plot.marks !== 'area') return name;
  const notes = Map.groupBy(
    points.filter(({ y, note }) => y === null && note !== undefined),
    ({ note }) => note!,
  );
  const gaps = [...notes].map(([note, gap]) => `${note} at ${gap.map(({ x }) => placeText(x)).join(', ')}`);
  const twin = twinOf(plot, index);
  const said = [...(twin === null ? [] : [`on ${plot.series[twin]!.name}`]), ...gaps];
  return said.length === 0 ? name : `${name} (${said.join('; ')})`;
}

function placeText(x: number | string): string {
  return typeof x === 'number' ? x.toLocaleString('en-US') : x;
}
