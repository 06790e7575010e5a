import { wrapWords } from '../text/terminal-text.ts';
import type { DrawnPlot } from './defaults.ts';
import { resolveX, resolveY } from './domain.ts';
import type { NumericAxis, ResolvedAxis } from './domain.ts';
import { endNamesWidth, nameEnds, type EndName } from './ends.ts';
import { layOutLegend, LEGEND_LINE, type LegendItem } from './legend.ts';
import { textWidth } from './text-width.ts';

export const FONT_SIZE = 12;
/** Pixels between the ends of a numeric x axis and its first and last value. */
export const X_INSET = 8;
/** Of the title, whose characters take so many pixels of the system's fonts, generously. */
export const TITLE_SIZE = 15;
const TITLE_CHARACTER = 8.5;
export const TITLE_LINE = 20;
const PADDING = 14;
/** The part of its height that an image keeps for the plot; it is higher where the texts around that leave less. */
const LEAST_PLOT = 1 / 4;

export interface PlotSize {
  /** Pixels. */
  width: number;
  height: number;
  /** With the title and a background, as an image of its own. */
  standalone: boolean;
}

export interface PlotLayout extends PlotSize {
  x: ResolvedAxis;
  /** The texts at its ticks, or below its categories. */
  xTexts: readonly string[];
  y: NumericAxis;
  /** Free space to the left of the widest text and above the first, in pixels. */
  padding: number;
  margin: { top: number; right: number; bottom: number; left: number };
  /** In lines; none where it is next to the image. */
  title: string[];
  legend: LegendItem[];
  /** Names at the ends of lines; where they have no room there, all are in the legend. */
  ends: EndName[];
}

/** How many ticks there is room for. */
export function tickCounts({ width, height }: PlotSize): { x: number; y: number } {
  return { x: Math.max(3, Math.round(width / 90)), y: Math.max(3, Math.round(height / 60)) };
}

/** Where everything goes. @throws ReportError for values that the axes cannot take. */
export function layOut(plot: DrawnPlot, size: PlotSize): PlotLayout {
  const counts = tickCounts(size);
  const y = resolveY(plot, counts.y);
  return layOutOn({ x: resolveX(plot, counts.x), y }, plot, size);
}

/** The same on axes that are known. */
export function layOutOn({ x, y }: Pick<PlotLayout, 'x' | 'y'>, plot: DrawnPlot, size: PlotSize): PlotLayout {
  const padding = size.standalone ? PADDING : 0;
  const columns = Math.floor((size.width - 2 * PADDING) / TITLE_CHARACTER);
  const title = size.standalone ? wrapWords(plot.title, columns).split('\n') : [];
  const titleHeight = size.standalone ? PADDING + 8 + title.length * TITLE_LINE : 0;
  const xTexts = x.scale === 'category' ? x.domain : x.texts;
  // Half of the last number reaches beyond the axis.
  const beyond = x.scale === 'category' ? 0 : textWidth(x.texts.at(-1)!) / 2 - X_INSET;
  const bottom = FONT_SIZE + 32 + padding / 2;
  const marginOf = (legendHeight: number, right: number) => ({
    ...{ top: legendHeight + 30, right: Math.max(16, beyond, right), bottom, left: ticksWidth(y, padding) },
  });
  const placed = { ...size, x, xTexts, y, padding, title };
  const endsWidth = endNamesWidth(plot, x, size.width);
  if (endsWidth !== null && x.scale !== 'category') {
    const margin = marginOf(titleHeight, endsWidth + padding);
    const height = heightOf(size, margin);
    const ends = nameEnds(plot, {
      ...{ x, y, left: margin.left, right: size.width - margin.right, inset: X_INSET },
      ...{ top: margin.top, bottom: height - margin.bottom },
    });
    if (ends !== null) return { ...placed, height, margin, legend: [], ends };
  }
  const legend = layOutLegend(plot, size.width, padding, titleHeight);
  const legendHeight = legend.length > 0 ? legend[legend.length - 1]!.top + LEGEND_LINE / 2 : titleHeight;
  const margin = marginOf(legendHeight, 0);
  return { ...placed, height: heightOf(size, margin), margin, legend, ends: [] };
}

function heightOf({ height }: PlotSize, { top, bottom }: PlotLayout['margin']): number {
  return Math.max(height, Math.ceil(top + height * LEAST_PLOT + bottom));
}

/** Pixels to the left of the plot: of the numbers at its axis. */
function ticksWidth(y: NumericAxis, padding: number): number {
  return padding + Math.max(...y.texts.map(textWidth), 16) + 12;
}

/** Whether names of categories stand next to one another below the axis of an image so wide. */
export function fitsLevel(
  names: readonly string[],
  y: NumericAxis,
  { width, standalone }: PlotSize,
): boolean {
  const slot = (width - ticksWidth(y, standalone ? PADDING : 0) - 16) / Math.max(1, names.length);
  return names.every((name) => textWidth(name) + 6 <= slot);
}
