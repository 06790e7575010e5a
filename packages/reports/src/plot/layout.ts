import { displayWidth } from '../text/display-width.ts';
import { lengthThatParts, shorten } from '../text/shorten.ts';
import { wrapWords } from '../text/terminal-text.ts';
import type { DrawnPlot } from './defaults.ts';
import { extent, resolveX, resolveY } from './domain.ts';
import type { NumericAxis, ResolvedAxis } from './domain.ts';

export const FONT_SIZE = 12;
/** Pixels between the ends of a numeric x axis and its first and last value. */
export const X_INSET = 8;
/** Generous widths of characters in the system's fonts, in pixels: the SVG is laid out before any font is known. */
const CHARACTER_WIDTHS = { narrow: 4.2, usual: 7.2, wide: 9.2 };
/** Of the title, whose characters take so many pixels of the system's fonts, generously. */
export const TITLE_SIZE = 15;
const TITLE_CHARACTER = 8.5;
export const TITLE_LINE = 20;
const LEGEND_LINE = 20;
const LEGEND_SYMBOL = 16;
const LEGEND_GAP = 18;
const ROTATION = 35;
const SINE = Math.sin((ROTATION * Math.PI) / 180);
/** Pixels from one turned text to the next, across them, that keep both readable. */
const TURNED_LINE = 9;
const PADDING = 14;
/** The part of its height that an image keeps for the plot; it is higher where the texts around that leave less. */
const LEAST_PLOT = 1 / 4;
/** Pixels of an image's width for each character of a category's name. */
const WIDTH_OF_NAMES = 13;

export interface PlotSize {
  /** Pixels. */
  width: number;
  height: number;
  /** With the title and a background, as an image of its own. */
  standalone: boolean;
}

export interface LegendItem {
  series: number;
  /** Pixels from the left of the image, and from its top to the middle of the line. */
  left: number;
  top: number;
}

export interface PlotLayout extends PlotSize {
  x: ResolvedAxis;
  /** The texts at its ticks, or below its categories; empty where there is no room. */
  xTexts: readonly string[];
  y: NumericAxis;
  /** Free space to the left of the widest text and above the first, in pixels. */
  padding: number;
  margin: { top: number; right: number; bottom: number; left: number };
  /** In lines; none where it is next to the image. */
  title: string[];
  /** Degrees by which the texts on the x axis are turned. */
  xRotation: number;
  legend: LegendItem[];
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
  const legend = layOutLegend(plot, size.width, padding, titleHeight);
  const legendHeight = legend.length > 0 ? legend[legend.length - 1]!.top + LEGEND_LINE / 2 : titleHeight;
  const xTexts = x.scale === 'category' ? shortNames(x.domain, size.width) : x.texts;
  // Half of the last number reaches beyond the axis.
  const beyond = x.scale === 'category' ? 0 : textWidth(x.texts.at(-1)!) / 2 - X_INSET;
  const right = Math.max(16, beyond);
  const [, longest] = extent([0, ...xTexts.map(textWidth)]);
  const ticksWidth = padding + Math.max(...y.texts.map(textWidth), 16) + 12;
  const slot = (size.width - ticksWidth - right) / Math.max(1, xTexts.length);
  const turned = x.scale === 'category' && longest + 6 > slot;
  const left = turned
    ? Math.max(ticksWidth, padding + marginForTurned(xTexts, size.width - right))
    : ticksWidth;
  const textHeight = turned ? longest * SINE + FONT_SIZE : FONT_SIZE;
  const [top, bottom] = [legendHeight + 30, textHeight + 32 + padding / 2];
  return {
    ...size,
    height: Math.max(size.height, Math.ceil(top + size.height * LEAST_PLOT + bottom)),
    x,
    xTexts: turned ? thinnedNames(xTexts, size.width - left - right) : xTexts,
    y,
    padding,
    title,
    margin: { top, right, bottom, left },
    xRotation: turned ? -ROTATION : 0,
    legend,
  };
}

function shortNames(names: readonly string[], width: number): string[] {
  const longest = lengthThatParts(names, Math.ceil(width / WIDTH_OF_NAMES));
  return names.map((name) => shorten(name, longest));
}

function thinnedNames(names: readonly string[], width: number): string[] {
  const stride = Math.ceil((TURNED_LINE * names.length) / (width * SINE));
  return names.map((name, index) => (index % stride === 0 ? name : ''));
}

/**
 * The left margin that keeps turned texts inside: text i ends below the middle of its slot, at
 * left + (i + 1/2) (right − left) / n, and reaches back by the cosine of its width.
 */
function marginForTurned(texts: readonly string[], right: number): number {
  const cosine = Math.cos((ROTATION * Math.PI) / 180);
  const margins = texts.map((text, index) => {
    const position = (index + 0.5) / texts.length;
    return (textWidth(text) * cosine - position * right) / (1 - position);
  });
  return extent(margins)[1] + FONT_SIZE / 2;
}

export function textWidth(text: string): number {
  const narrow = text.match(/[ ijltfr.,:;|'!()[\]-]/g)?.length ?? 0;
  const wide = text.match(/[A-Zmw%@±×]/g)?.length ?? 0;
  const usual = displayWidth(text) - narrow - wide;
  return narrow * CHARACTER_WIDTHS.narrow + usual * CHARACTER_WIDTHS.usual + wide * CHARACTER_WIDTHS.wide;
}

function layOutLegend(plot: DrawnPlot, width: number, start: number, titleHeight: number): LegendItem[] {
  if (plot.series.length < 2) return [];
  let left = start;
  let top = titleHeight + LEGEND_LINE / 2;
  return plot.series.map(({ name }, series) => {
    const itemWidth = LEGEND_SYMBOL + textWidth(name) + LEGEND_GAP;
    if (left > start && left + itemWidth > width) {
      left = start;
      top += LEGEND_LINE;
    }
    const item = { series, left, top };
    left += itemWidth;
    return item;
  });
}
