import type { DrawnPlot } from '../plot/defaults.ts';
import { resolveX, resolveY, type NumericAxis } from '../plot/domain.ts';
import { FONT_SIZE, TITLE_LINE, TITLE_SIZE, fitsLevel, tickCounts, type PlotSize } from '../plot/layout.ts';
import { LEGEND_LINE, layOutLegend, type LegendItem } from '../plot/legend.ts';
import { textWidth } from '../plot/text-width.ts';
import { formatNumber } from '../table/format.ts';
import { lengthThatParts, shorten } from '../text/shorten.ts';
import { wrapWords } from '../text/terminal-text.ts';

const PADDING = { standalone: 24, inline: 0 };
/** A name takes at most this part of the width; longer ones stand above their bars. */
const WIDEST_NAMES = 0.4;
const SHORTEST_NAME = 36;
const CHARACTER = 7;
const TITLE_CHARACTER = 9;
const BAR = { several: 13, one: 18 };
const GAP = 9;
const NAME_LINE = 19;

/** Where everything goes, in pixels. */
export interface RowsLayout {
  readonly width: number;
  readonly height: number;
  readonly padding: number;
  readonly title: readonly string[];
  readonly titleTop: number;
  readonly legend: readonly LegendItem[];
  readonly categories: readonly string[];
  /** As they are written. */
  readonly names: readonly string[];
  /** Whether names stand to the left of their bars. */
  readonly isBeside: boolean;
  /** The ends of the axis. */
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
  readonly rowHeight: number;
  /** From the top of a row to its first bar. */
  readonly barsDrop: number;
  readonly barHeight: number;
  readonly axis: NumericAxis;
  /** Where a value is. */
  at(value: number): number;
}

/** Whether categories have no room next to one another, or their bars none for what they say in place of a value. */
export function wantsRows(plot: DrawnPlot, size: PlotSize): boolean {
  const x = resolveX(plot, tickCounts(size).x);
  if (x.scale !== 'category') return false;
  const gaps = plot.series.flatMap(({ points }) => points.filter(({ y, note }) => y === null && note));
  return gaps.length > 0 || !fitsLevel(x.domain, resolveY(plot, tickCounts(size).y), size);
}

/** @throws ReportError for values that the axis cannot take. */
export function layOutRows(plot: DrawnPlot, { width, standalone }: PlotSize): RowsLayout {
  const padding = standalone ? PADDING.standalone : PADDING.inline;
  const inner = width - 2 * padding;
  const title = standalone ? wrapWords(plot.title, Math.floor(inner / TITLE_CHARACTER)).split('\n') : [];
  const titleHeight = padding + title.length * TITLE_LINE;
  const legend = layOutLegend(plot, width - padding, padding, titleHeight + (standalone ? 6 : 0));
  const top = (legend.at(-1)?.top ?? titleHeight - LEGEND_LINE / 2) + LEGEND_LINE / 2 + 8;
  const axis = resolveY(plot, Math.max(3, Math.round(width / 110)));
  const { domain: categories } = resolveX(plot, 3) as { domain: string[] };
  const names = namesOf(categories, inner);
  const widest = Math.max(...names.map(textWidth), 0);
  const isBeside = widest <= WIDEST_NAMES * inner;
  const bars = plot.stacked || plot.marks !== 'bar' ? 1 : plot.series.length;
  const barHeight = bars === 1 ? BAR.one : BAR.several;
  const barsDrop = (isBeside ? GAP / 2 : NAME_LINE) + 1;
  const rowHeight = barsDrop + bars * (barHeight + 1) + GAP / 2;
  const left = padding + (isBeside ? widest + 14 : Math.max(0, textWidth(axis.texts[0]!) / 2 - padding));
  const right =
    width - padding - Math.max(...valueTexts(plot).map(textWidth), textWidth(axis.texts.at(-1)!) / 2) - 10;
  const bottom = top + categories.length * rowHeight;
  return {
    ...{ width, padding, title, titleTop: padding + TITLE_SIZE, legend, categories, names, isBeside },
    ...{ left, right, top, bottom, rowHeight, barsDrop, barHeight, axis },
    height: Math.ceil(bottom + 2 * FONT_SIZE + 26 + padding),
    at: placing(axis, left, right),
  };
}

function namesOf(categories: readonly string[], inner: number): string[] {
  const room = Math.floor(inner / CHARACTER);
  const longest = Math.min(room, lengthThatParts(categories, Math.min(SHORTEST_NAME, room)));
  return categories.map((name) => shorten(name, longest));
}

function placing({ scale, domain: [low, high] }: NumericAxis, left: number, right: number): RowsLayout['at'] {
  const place = scale === 'log' ? Math.log : (value: number) => value;
  const perUnit = (right - left) / (place(high) - place(low));
  return (value) => left + (place(value) - place(low)) * perUnit;
}

/** What is written at the end of each bar; of stacked ones their sum. */
export function valueTexts(plot: DrawnPlot): string[] {
  return plot.series.flatMap(({ points }) => points.flatMap(({ y }) => (y === null ? [] : [valueText(y)])));
}

export function valueText(value: number): string {
  return formatNumber(value, Number.isInteger(value) && Math.abs(value) < 1000 ? undefined : 3);
}
