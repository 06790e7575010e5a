import { extent, numericAxis, trimmed } from '../plot/domain.ts';
import { FONT_SIZE, layOutOn, tickCounts, X_INSET } from '../plot/layout.ts';
import { textWidth } from '../plot/text-width.ts';
import type { PlotLayout, PlotSize } from '../plot/layout.ts';
import type { DrawnPlot } from '../plot/defaults.ts';
import type { RooflinePlot } from '../model.ts';
import { categoriesOf, performances, rateUnit } from './performance.ts';
import type { Performance } from './performance.ts';

/** The largest dot's radius in pixels, and the least that can be pointed at. */
const LARGEST_RADIUS = 15;
const SMALLEST_RADIUS = 3;
/** Room around the outermost dots and the ridge, as a factor. */
const REACH = 2.5;

/** A point as it is drawn. Pixels count from the left and the top of the image. */
export interface Dot extends Performance {
  /** Index of its category. */
  readonly series: number;
  /** In the unit of the axis. */
  readonly rate: number;
  readonly radius: number;
  readonly left: number;
  readonly top: number;
}

/** A roofline ready to be drawn: its axes, titles and legend as a plot's, and its dots, the largest first. */
export interface RooflineFrame {
  readonly plot: DrawnPlot;
  readonly layout: PlotLayout;
  readonly dots: readonly Dot[];
}

export function frameOf(roofline: RooflinePlot, size: PlotSize): RooflineFrame {
  const performed = performances(roofline);
  const unit = rateUnit(roofline);
  const categories = categoriesOf(roofline);
  const plot: DrawnPlot = {
    kind: 'plot',
    id: roofline.id,
    title: roofline.title,
    x: { label: 'Arithmetic intensity', unit: 'FLOP/byte', scale: 'log' },
    y: { label: 'Performance', unit: unit.name, scale: 'log' },
    marks: 'dot',
    series: categories.map((name) => ({ name, points: [] })),
  };
  const layout = layOutOn(axesOf(roofline, performed, size), plot, size);
  const [, longest] = extent(performed.map(({ point }) => point.durationMs));
  const dots = performed
    .toSorted((a, b) => b.point.durationMs - a.point.durationMs)
    .map((each): Dot => {
      const rate = each.flopsPerSecond / unit.size;
      return {
        ...each,
        series: categories.indexOf(each.point.category ?? ''),
        rate,
        radius: Math.max(SMALLEST_RADIUS, LARGEST_RADIUS * Math.sqrt(each.point.durationMs / longest)),
        ...pixelsOf(layout, each.intensity, rate),
      };
    });
  return { plot, layout, dots };
}

/** From the least to the most of dots and ridges, and some room. */
function axesOf(
  roofline: RooflinePlot,
  performed: readonly Performance[],
  size: PlotSize,
): Pick<PlotLayout, 'x' | 'y'> {
  const { ceilings, bandwidth } = roofline;
  const unit = rateUnit(roofline);
  const ridges = ceilings.map(({ flopsPerSecond }) => flopsPerSecond / bandwidth.bytesPerSecond);
  const intensities = [...ridges, ...performed.map(({ intensity }) => intensity)];
  const rates = [...ceilings, ...performed].map(({ flopsPerSecond }) => flopsPerSecond / unit.size);
  const counts = tickCounts(size);
  const axis = (values: readonly number[], reach: number, count: number) => {
    const [least, most] = extent(values);
    const ends: [number, number] = [least / REACH, most * reach];
    return trimmed(numericAxis('log', ends, [], count), ends);
  };
  return { x: axis(intensities, REACH, counts.x), y: axis(rates, REACH / 1.25, counts.y) };
}

/** The position of a value on two logarithmic axes. */
export function pixelsOf(layout: PlotLayout, x: number, y: number): { left: number; top: number } {
  const { width, height, margin } = layout;
  const part = (value: number, [low, high]: readonly [number, number]) =>
    Math.log(value / low) / Math.log(high / low);
  const across = width - margin.left - margin.right - 2 * X_INSET;
  const down = height - margin.top - margin.bottom;
  return {
    left: margin.left + X_INSET + part(x, layout.x.domain as [number, number]) * across,
    top: height - margin.bottom - part(y, layout.y.domain) * down,
  };
}

/** A dot's name next to it. */
export interface DotLabel {
  readonly dot: Dot;
  readonly text: string;
  /** The side of the dot that it is on. */
  readonly side: 'left' | 'right';
  readonly box: Box;
}

/** Pixels from the left and the top of the image. */
export interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

/** A straight line between two places, in pixels, the left one first. */
export type Segment = readonly [Place, Place];
interface Place {
  readonly left: number;
  readonly top: number;
}

function crosses(box: Box, [from, to]: Segment): boolean {
  const [start, end] = [Math.max(from.left, box.left), Math.min(to.left, box.right)];
  if (start > end) return false;
  const heightAt = (x: number) =>
    from.top + ((to.top - from.top) * (x - from.left)) / Math.max(1, to.left - from.left);
  const heights = [heightAt(start), heightAt(end)];
  return Math.min(...heights) < box.bottom && Math.max(...heights) > box.top;
}

/** Names for the dots that took most time, where they cover neither one another, nor another dot, nor what is named already, nor the roof. */
export function labelDots(
  { layout, dots }: RooflineFrame,
  shortName: (name: string) => string,
  named: readonly Box[],
  lines: readonly Segment[],
): DotLabel[] {
  const most = layout.width < 600 ? 3 : 7;
  const taken: Box[] = [...named];
  const labels: DotLabel[] = [];
  for (const dot of dots.slice(0, most)) {
    const text = shortName(dot.point.name);
    for (const side of ['right', 'left'] as const) {
      const box = labelBox(dot, side, textWidth(text));
      const isInside = box.left > layout.margin.left && box.right < layout.width - layout.margin.right;
      const blocked = [...taken, ...dots.filter((other) => other !== dot).map(dotBox)];
      if (!isInside || blocked.some((other) => overlaps(box, other))) continue;
      if (lines.some((line) => crosses(box, line))) continue;
      taken.push(box);
      labels.push({ dot, text, side, box });
      break;
    }
  }
  return labels;
}

function labelBox({ left, top, radius }: Dot, side: DotLabel['side'], width: number): Box {
  const near = side === 'right' ? left + radius + 4 : left - radius - 4 - width;
  return { left: near, right: near + width, top: top - FONT_SIZE / 2, bottom: top + FONT_SIZE / 2 };
}

function dotBox({ left, top, radius }: Dot): Box {
  return { left: left - radius, right: left + radius, top: top - radius, bottom: top + radius };
}

function overlaps(a: Box, b: Box): boolean {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}
