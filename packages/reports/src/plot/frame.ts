import type { Markish, TextOptions } from '@observablehq/plot';
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
  const { x, xTexts, y, margin, padding, xRotation } = layout;
  const common = { color: palette.muted, label: null };
  const turned = xRotation === 0 ? {} : { tickRotate: xRotation, textAnchor: 'end' as const };
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
      ...turned,
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

export function referenceMarks(plot: DrawnPlot, palette: Palette): Markish[] {
  return (plot.references ?? []).flatMap(({ label, y }) => [
    observablePlot().ruleY([y], { stroke: palette.ink, strokeDasharray: '5 4', strokeWidth: 1.25 }),
    observablePlot().text([label], {
      y: [y],
      frameAnchor: 'right',
      textAnchor: 'end',
      dy: -9,
      fill: palette.ink,
      stroke: palette.background,
      strokeWidth: 4,
    }),
  ]);
}

export function legendMarks(plot: DrawnPlot, { legend, margin }: PlotLayout, palette: Palette): Markish[] {
  return legend.flatMap(({ series, left, top }) => {
    const at = { dx: left - margin.left, dy: top - margin.top, frameAnchor: 'top-left' as const };
    const symbol = plot.marks === 'line' || plot.marks === 'dot' ? symbolOf(series) : 'square';
    const fillOpacity = plot.marks === 'bar' ? opacityOf(series, palette) : 1;
    return [
      observablePlot().dot([0], {
        ...at,
        dx: at.dx + 6,
        r: 4.5,
        symbol,
        fill: colorOf(series, palette),
        fillOpacity,
      }),
      note(plot.series[series]!.name, { ...at, dx: at.dx + 16, fill: palette.ink }),
    ];
  });
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
