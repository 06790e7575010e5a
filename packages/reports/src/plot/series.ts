import type { Markish, SymbolImplementation } from '@observablehq/plot';
import { observablePlot } from './drawing-libraries.ts';
import { formatNumber } from '../table/format.ts';
import type { Point } from '../model.ts';
import type { DrawnPlot } from './defaults.ts';
import { stackPoints } from './stack.ts';
import type { StackedPoint } from './stack.ts';
import type { PlotLayout } from './layout.ts';
import type { Palette } from './palette.ts';
import { partyColors } from './party-colors.ts';
import { twinOf } from './twins.ts';

/** Each series has a shape as well as a colour; where the colours repeat, the shape differs. */
const SYMBOLS = ['circle', 'square', 'triangle', 'diamond', 'star', 'cross'] as const;
/** A line with more points than this shows no dots. */
const MOST_DOTS = 40;
/** A series with more points than this has no tooltips: their markup would outweigh the line. */
const MOST_TITLES = 300;

/** The part of a category's width that its bars take. */
const BARS_WIDTH = 0.76;
/** The part that a stack takes. */
const STACK_WIDTH = 0.5;

/** What Plot gives a symbol to draw on. */
interface CanvasPath {
  moveTo(x: number, y: number): void;
  lineTo(x: number, y: number): void;
}

/** The end of an error bar. */
const CAP: SymbolImplementation = {
  draw(context: CanvasPath) {
    context.moveTo(-4, 0);
    context.lineTo(4, 0);
  },
};

/** The colours of a plot's series, by who they are. */
export function colorOf(names: readonly string[], series: number, palette: Palette): string {
  return palette.series[partyColors(names)[series]!]!;
}

/** Bars have no shape: they are paler each time that a colour repeats. */
export function opacityOf(names: readonly string[], series: number): number {
  const colors = partyColors(names);
  return 1 / (1 + colors.slice(0, series).filter((color) => color === colors[series]).length);
}

export function symbolOf(series: number): (typeof SYMBOLS)[number] {
  const round = Math.floor(series / SYMBOLS.length);
  return SYMBOLS[(series + round) % SYMBOLS.length]!;
}

/** The marks of one series, error bars and notes included. */
export function seriesMarks(plot: DrawnPlot, index: number, layout: PlotLayout, palette: Palette): Markish[] {
  const names = plot.series.map((each) => each.name);
  const name = names[index]!;
  const points = stackPoints(plot)[index]!;
  const color = colorOf(names, index, palette);
  const x = placement(plot, index, layout);
  const style: Style = {
    color,
    opacity: opacityOf(names, index),
    symbol: plot.marks === 'area' ? 'circle' : symbolOf(index),
    dash: twinOf(plot, index) === null ? {} : { strokeDasharray: '7 5' },
    described: points.length <= MOST_TITLES ? { title: (point: Point) => pointText(plot, name, point) } : {},
    base: plot.y.scale === 'log' ? layout.y.domain[0] : 0,
    floor: layout.y.domain[0],
  };
  return [
    ...shapeMarks(plot, points, x, style),
    ...(plot.marks === 'area'
      ? []
      : errorBarMarks(points, x, layout, plot.marks === 'bar' ? palette.ink : color)),
    ...noteMarks(plot, index, x, layout, color),
  ];
}

type Placement = (point: Point) => number;

/** Categories are at 0, 1, 2 and so on; the bars of one category are side by side around it, or stacked. */
function placement(plot: DrawnPlot, index: number, { x }: PlotLayout): Placement {
  if (x.scale !== 'category') return (point) => Number(point.x);
  const isBesideOthers = plot.marks === 'bar' && !plot.stacked;
  const offset = isBesideOthers ? (index + 0.5 - plot.series.length / 2) * barWidth(plot) : 0;
  const order = new Map(x.domain.map((category, position) => [category, position]));
  return (point) => order.get(String(point.x))! + offset;
}

function barWidth(plot: DrawnPlot): number {
  return plot.stacked ? STACK_WIDTH : BARS_WIDTH / plot.series.length;
}

interface Style {
  color: string;
  /** Of bars. */
  opacity: number;
  symbol: (typeof SYMBOLS)[number];
  /** Of a line on another. */
  dash: { strokeDasharray?: string };
  described: { title?: (point: Point) => string };
  /** Where bars and areas begin. */
  base: number;
  /** The least that the vertical axis shows. */
  floor: number;
}

function shapeMarks(plot: DrawnPlot, points: StackedPoint[], x: Placement, style: Style): Markish[] {
  const { color, opacity, symbol, described, base, dash } = style;
  const measured = points.filter(({ y }) => y !== null);
  if (plot.marks === 'bar') {
    const half = barWidth(plot) * 0.46;
    const sides = { x1: (point: Point) => x(point) - half, x2: (point: Point) => x(point) + half };
    const ends = {
      y1: ({ offset }: StackedPoint) => base + offset,
      y2: ({ y, offset }: StackedPoint) => offset + y!,
    };
    return [
      observablePlot().rect(measured, { ...sides, ...ends, ...described, fill: color, fillOpacity: opacity }),
    ];
  }
  const showDots = plot.marks === 'dot' || (plot.marks === 'line' && points.length <= MOST_DOTS);
  const dots = observablePlot().dot(measured, {
    ...described,
    x,
    y: 'y',
    symbol,
    r: plot.marks === 'dot' ? 3.5 : 4,
    fill: color,
    // Unseen dots still carry the tooltips.
    fillOpacity: showDots ? (plot.marks === 'dot' ? 0.8 : 1) : 0,
  });
  if (plot.marks === 'dot') return [dots];
  const line = observablePlot().line(points, { x, y: 'y', stroke: color, strokeWidth: 2, ...dash });
  return [
    ...(plot.marks === 'area' ? [areaMark(points, x, style)] : []),
    line,
    ...(showDots || described.title ? [dots] : []),
  ];
}

/** Between `low` and `high` where points have them, otherwise from the axis to `y`. */
function areaMark(points: Point[], x: Placement, { color, base, floor }: Style): Markish {
  const isBand = points.some(({ low, high }) => low !== undefined && high !== undefined);
  const lower = ({ y, low }: Point) => (low === undefined ? y : Math.max(low, floor));
  const y1 = isBand ? lower : base;
  const y2 = isBand ? (point: Point) => point.high ?? point.y : 'y';
  return observablePlot().areaY(points, { x, y1, y2, fill: color, fillOpacity: 0.18 });
}

function errorBarMarks(points: StackedPoint[], x: Placement, layout: PlotLayout, color: string): Markish[] {
  const barred = points.filter(({ y, low, high }) => y !== null && low !== undefined && high !== undefined);
  if (barred.length === 0) return [];
  const low = (point: StackedPoint) => Math.max(point.offset + point.low!, layout.y.domain[0]);
  const high = (point: StackedPoint) => point.offset + point.high!;
  const stroke = { stroke: color, strokeWidth: 1.25, className: 'error-bars' };
  const cap = { ...stroke, x, symbol: CAP, fill: 'none' };
  return [
    observablePlot().ruleX(barred, { ...stroke, x, y1: low, y2: high }),
    observablePlot().dot(barred, { ...cap, y: low }),
    observablePlot().dot(barred, { ...cap, y: high }),
  ];
}

/** In the gap of a point that has no value: of bars why, of lines a cross, which the legend explains. */
function noteMarks(
  plot: DrawnPlot,
  index: number,
  x: Placement,
  layout: PlotLayout,
  color: string,
): Markish[] {
  const gaps = plot.series[index]!.points.filter(({ y, note }) => y === null && note !== undefined);
  if (gaps.length === 0) return [];
  const y = () => layout.y.domain[0];
  if (plot.marks === 'bar') {
    const style = { fill: color, className: 'gap-notes', dy: -8 };
    return [observablePlot().text(gaps, { ...style, x, y, text: 'note' })];
  }
  const dy = -7 - 10 * index;
  return [observablePlot().dot(gaps, { x, y, dy, r: 4, symbol: 'times', stroke: color, strokeWidth: 2 })];
}

export function pointText(plot: DrawnPlot, name: string, { x, y, low, high, note }: Point): string {
  const withUnit = (text: string, unit?: string) => (unit ? `${text} ${unit}` : text);
  const number = (value: number) => formatNumber(value, Number.isInteger(value) ? undefined : 4);
  const value = y === null ? '' : withUnit(number(y), plot.y.unit);
  const range = low === undefined || high === undefined ? '' : ` (${number(low)} to ${number(high)})`;
  const at = withUnit(typeof x === 'number' ? formatNumber(x) : x, plot.x.unit);
  return [name, `${plot.x.label}: ${at}`, `${plot.y.label}: ${value}${range}`, note]
    .filter(Boolean)
    .join('\n');
}
