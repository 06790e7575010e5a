import type { RatioPlot } from '../model.ts';
import { FONT_SIZE, TITLE_LINE, type PlotSize } from '../plot/layout.ts';
import { textWidth } from '../plot/text-width.ts';
import { headingText, tableTexts } from '../table/cell-text.ts';
import { withColumnUnits } from '../table/column-units.ts';
import { shorten } from '../text/shorten.ts';
import { wrapWords } from '../text/terminal-text.ts';
import { ratioScale, type RatioScale } from './scale.ts';
import { ratioTable } from './table.ts';

/** Below it the names of a row lie above its dot. */
const LEAST_WIDE = 600;
const PADDING = { standalone: 24, inline: 0 };
/** Of an axis next to names and values; one with less room lies below them. */
const LEAST_AXIS = 240;
const LONGEST_NAME = 28;
const GAP = 20;
/** How much wider bold text is. */
export const BOLD = 1.12;
/** The height of a line of values of its own. */
const VALUE_LINE = 18;
/** Room for a ratio's text on either side of its dot. */
const INSET = 62;
const CHARACTERS_A_PIXEL = 1 / 7.4;
const TITLE_CHARACTERS_A_PIXEL = 1 / 9;

/** A column of texts: the names of cases, or values, which end at `x`. */
export interface TextColumn {
  readonly head: string;
  readonly x: number;
  readonly isValue: boolean;
  readonly texts: readonly string[];
}

/** Where everything goes, in pixels. */
export interface RatioLayout {
  readonly width: number;
  readonly height: number;
  readonly padding: number;
  readonly title: readonly string[];
  readonly caption: readonly string[];
  /** The top of the heads' line, and of the first row. */
  readonly headTop: number;
  readonly rowsTop: number;
  readonly rowHeight: number;
  /** From a row's top to its names, to where lines begin, and to its dot. */
  readonly namesDrop: number;
  /** From names to values, where both have no room in one line. */
  readonly valuesDrop: number;
  readonly linesDrop: number;
  readonly dotDrop: number;
  readonly columns: readonly TextColumn[];
  readonly ratioTexts: readonly string[];
  readonly axis: { readonly left: number; readonly right: number; readonly scale: RatioScale };
}

/** @throws ReportError for a comparison without any ratio. */
export function layOutRatios(plot: RatioPlot, { width, standalone }: PlotSize): RatioLayout {
  const padding = standalone ? PADDING.standalone : PADDING.inline;
  const inner = width - 2 * padding;
  const wrap = (text: string, charactersAPixel: number) =>
    standalone && text !== '' ? wrapWords(text, Math.floor(inner * charactersAPixel)).split('\n') : [];
  const title = wrap(plot.title, TITLE_CHARACTERS_A_PIXEL);
  const caption = wrap(plot.caption ?? '', CHARACTERS_A_PIXEL);
  const headTop = padding + title.length * TITLE_LINE + caption.length * 18 + (standalone ? 12 : 0);
  const beside = width >= LEAST_WIDE ? textColumns(plot, true, padding, width - padding) : null;
  const isWide = beside !== null && beside.right - beside.left >= LEAST_AXIS;
  const { columns, ratioTexts, left, right } = isWide
    ? beside
    : textColumns(plot, false, padding, width - padding);
  const valuesDrop = isWide || fitsInLine(columns) ? 0 : VALUE_LINE;
  const rowsTop = headTop + 36 + valuesDrop;
  const rowHeight = isWide ? 32 : 52 + valuesDrop;
  return {
    ...{ width, padding, title, caption, headTop, rowsTop, rowHeight, columns, ratioTexts },
    height: rowsTop + plot.rows.length * rowHeight + FONT_SIZE + 14 + padding,
    namesDrop: isWide ? rowHeight / 2 + 4 : 17,
    valuesDrop,
    linesDrop: isWide ? 0 : 22 + valuesDrop,
    dotDrop: isWide ? rowHeight / 2 : 36 + valuesDrop,
    axis: { left, right, scale: ratioScale(plot, right - left, INSET) },
  };
}

/** Whether names end before values begin. */
function fitsInLine(columns: readonly (TextColumn & { readonly width: number })[]): boolean {
  const ends = columns.filter(({ isValue }) => !isValue).map(({ x, width }) => x + width);
  const starts = columns.filter(({ isValue }) => isValue).map(({ x, width }) => x - width);
  return Math.max(...ends) + 6 <= Math.min(...starts);
}

/** Names to the left of the axis and values to its right, or both above it. */
function textColumns(plot: RatioPlot, isWide: boolean, start: number, end: number) {
  const table = withColumnUnits(ratioTable(plot));
  const texts = tableTexts(table);
  const count = plot.heads.length;
  const column = (index: number) => {
    const [head, ...its] = [headingText(table.columns[index]!), ...texts.map((row) => row[index]!)].map(
      (text) => shorten(text, LONGEST_NAME),
    ) as [string, ...string[]];
    const wide = index === 0 ? BOLD : 1;
    return { head, texts: its, width: wide * Math.max(...[head, ...its].map(textWidth)) };
  };
  const [ours, theirs] = [column(count), column(count + 1)];
  const values = [
    { ...ours, x: end - theirs.width - GAP, isValue: true },
    { ...theirs, x: end, isValue: true },
  ];
  const ratioTexts = texts.map((row) => row[count + 2]!);
  let left = start;
  const names = plot.heads.map((_, index) => {
    const { head, texts: its, width } = column(index);
    const placed = { head, texts: its, width, x: left, isValue: false };
    left += width + (isWide ? GAP : 10);
    return placed;
  });
  if (!isWide) return { columns: [...names, ...values], ratioTexts, left: start, right: end };
  return { columns: [...names, ...values], ratioTexts, left, right: values[0]!.x - ours.width - GAP };
}
