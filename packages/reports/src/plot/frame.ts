import type { DotOptions, Markish, SymbolImplementation, TextOptions } from '@observablehq/plot';
import { observablePlot } from './drawing-libraries.ts';
import type { Axis } from '../model.ts';
import type { DrawnPlot } from './defaults.ts';
import { FONT_SIZE, TITLE_LINE, TITLE_SIZE } from './layout.ts';
import type { PlotLayout } from './layout.ts';
import type { Palette } from './palette.ts';
import { colorOf, opacityOf, symbolOf } from './series.ts';

export function axisLabel({ label, unit }: Axis): string {
  return unit ? `${label} (${unit})` : label;
}

export function axisMarks(plot: DrawnPlot, layout: PlotLayout, palette: Palette): Markish[] {
  const { x, xTexts, y, margin, padding } = layout;
  const common = { color: palette.muted, label: null };
  const xTicks = x.scale === 'category' ? x.domain.map((_, index) => index) : x.ticks;
  const textOf = (ticks: readonly number[], texts: readonly string[]) => (tick: number) =>
    texts[ticks.indexOf(tick)] ?? '';
  return [
    observablePlot().gridY(y.ticks, { stroke: palette.grid, strokeOpacity: 1 }),
    observablePlot().axisY({
      ...common,
      ticks: y.ticks,
      text: textOf(y.ticks, y.texts),
      tickSize: 0,
      tickPadding: 8,
    }),
    observablePlot().axisX({
      ...common,
      ticks: xTicks,
      text: textOf(xTicks, xTexts),
      tickSize: x.scale === 'category' ? 0 : 4,
      tickPadding: x.scale === 'category' ? 9 : 5,
    }),
    observablePlot().ruleY([y.domain[0]], { stroke: palette.muted }),
    note(axisLabel(plot.y), {
      dx: padding - margin.left,
      dy: -18,
      frameAnchor: 'top-left',
      fill: palette.ink,
    }),
    note(axisLabel(plot.x), {
      dy: margin.bottom - (FONT_SIZE + padding) / 2 - 2,
      frameAnchor: 'bottom',
      fill: palette.ink,
    }),
  ];
}

export const REFERENCE_DASH = '5 4';

/** Lines across the plot, which the legend names. */
export function referenceMarks(plot: DrawnPlot, palette: Palette): Markish[] {
  const style = { stroke: palette.ink, strokeDasharray: REFERENCE_DASH, strokeWidth: 1.25 };
  return (plot.references ?? []).map(({ y }) => observablePlot().ruleY([y], style));
}

/** A dash that is drawn as a symbol is. */
const DASH: SymbolImplementation = {
  draw(context: { moveTo(x: number, y: number): void; lineTo(x: number, y: number): void }) {
    context.moveTo(-7, 0);
    context.lineTo(-1.5, 0);
    context.moveTo(1.5, 0);
    context.lineTo(7, 0);
  },
};

/** Names at the ends of their lines. */
export function endMarks(plot: DrawnPlot, { ends, margin }: PlotLayout, palette: Palette): Markish[] {
  const names = plot.series.map(({ name }) => name);
  return ends.map(({ series, label, left, top }) =>
    note(label, {
      ...{ dx: left - margin.left, dy: top - margin.top, frameAnchor: 'top-left' },
      fill: series === null ? palette.ink : colorOf(names, series, palette),
    }),
  );
}

export function legendMarks(plot: DrawnPlot, { legend, margin }: PlotLayout, palette: Palette): Markish[] {
  return legend.flatMap(({ series, label, left, top }) => {
    const at = { dx: left - margin.left, dy: top - margin.top, frameAnchor: 'top-left' as const };
    return [
      observablePlot().dot([0], { ...at, dx: at.dx + 6, r: 4.5, ...legendSymbol(plot, series, palette) }),
      note(label, { ...at, dx: at.dx + 16, fill: palette.ink }),
    ];
  });
}

function legendSymbol(plot: DrawnPlot, series: number | null, palette: Palette): DotOptions {
  if (series === null) return { symbol: DASH, stroke: palette.ink, strokeWidth: 1.5 };
  const names = plot.series.map(({ name }) => name);
  return {
    symbol: plot.marks === 'line' || plot.marks === 'dot' ? symbolOf(series) : 'square',
    fill: colorOf(names, series, palette),
    fillOpacity: plot.marks === 'bar' ? opacityOf(names, series) : 1,
  };
}

export function titleMarks({ title, margin, padding }: PlotLayout, palette: Palette): Markish[] {
  const font = { fill: palette.ink, fontSize: TITLE_SIZE, fontWeight: 600 };
  return title.map((line, index) => {
    const dy = padding + 10 + index * TITLE_LINE - margin.top;
    return note(line, { ...font, dx: padding - margin.left, dy, frameAnchor: 'top-left' });
  });
}

function note(text: string, options: TextOptions): Markish {
  const left = options.frameAnchor === 'top-left';
  return observablePlot().text([text], {
    textAnchor: left ? 'start' : 'middle',
    lineAnchor: 'middle',
    ...options,
  });
}
