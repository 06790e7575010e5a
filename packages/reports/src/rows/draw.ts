import type { DrawnPlot } from '../plot/defaults.ts';
import { FONT_FAMILY } from '../plot/font-family.ts';
import { axisLabel, REFERENCE_DASH } from '../plot/frame.ts';
import { inWords } from '../plot/in-words.ts';
import { FONT_SIZE, TITLE_LINE, TITLE_SIZE, type PlotSize } from '../plot/layout.ts';
import type { Palette } from '../plot/palette.ts';
import { colorOf, opacityOf, pointText } from '../plot/series.ts';
import { stackPoints, type StackedPoint } from '../plot/stack.ts';
import { anchor, haloOf, line, px, text } from '../plot/svg-marks.ts';
import { printable } from '../text/printable.ts';
import { escapeXml } from '../text/xml.ts';
import { layOutRows, valueText, type RowsLayout } from './layout.ts';

/** The source of an `<svg>` element: a row a category, with bars from the left, or dots. */
export function drawRows(plot: DrawnPlot, palette: Palette, size: PlotSize): string {
  const layout = layOutRows(plot, size);
  const { width, height } = layout;
  return printable(
    [
      `<svg aria-label="${escapeXml(inWords(plot))}" xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" ` +
        `viewBox="0 0 ${width} ${height}" font-family="${FONT_FAMILY}" font-size="${FONT_SIZE}" ` +
        `color="${palette.ink}" fill="${palette.ink}" font-variant-numeric="tabular-nums" role="img">`,
      ...(size.standalone ? [`<rect width="100%" height="100%" fill="${palette.background}"/>`] : []),
      ...layout.title.map((words, index) =>
        text(
          words,
          layout.padding,
          layout.titleTop + index * TITLE_LINE,
          `font-size="${TITLE_SIZE}" font-weight="600"`,
        ),
      ),
      ...legendMarks(plot, layout, palette),
      ...axisMarks(plot, layout, palette),
      ...nameTexts(layout),
      ...stackPoints(plot).flatMap((points, series) => seriesMarks(plot, series, points, layout, palette)),
      ...referenceLines(plot, layout, palette),
      '</svg>',
    ].join(''),
  );
}

function legendMarks(plot: DrawnPlot, { legend }: RowsLayout, palette: Palette): string[] {
  const names = plot.series.map(({ name }) => name);
  return legend.flatMap(({ series, label, left, top }) => {
    const symbol =
      series === null
        ? `<line x1="${px(left)}" y1="${px(top)}" x2="${px(left + 13)}" y2="${px(top)}" stroke="${palette.ink}" stroke-width="1.5" stroke-dasharray="${REFERENCE_DASH}"/>`
        : `<rect x="${px(left + 1)}" y="${px(top - 5)}" width="10" height="10" fill="${colorOf(names, series, palette)}" fill-opacity="${opacityOf(names, series)}"/>`;
    return [symbol, text(label, left + 17, top + 4, '')];
  });
}

function axisMarks(plot: DrawnPlot, layout: RowsLayout, palette: Palette): string[] {
  const { axis, top, bottom, left, right, at } = layout;
  const style = `fill="${palette.muted}"${anchor('middle')}`;
  return [
    ...axis.ticks.map((tick) => line(at(tick), top, at(tick), bottom, palette.grid)),
    line(left, top, left, bottom, palette.muted),
    ...axis.ticks.map((tick, index) => text(axis.texts[index]!, at(tick), bottom + FONT_SIZE + 6, style)),
    text(axisLabel(plot.y), (left + right) / 2, bottom + 2 * FONT_SIZE + 18, anchor('middle').trim()),
  ];
}

function nameTexts({ names, isBeside, left, top, rowHeight, barsDrop, padding }: RowsLayout): string[] {
  return names.map((name, index) => {
    const start = top + index * rowHeight;
    const middle = start + (barsDrop + rowHeight - 5) / 2 + 4;
    return isBeside
      ? text(name, left - 10, middle, anchor('end').trim())
      : text(name, padding, start + FONT_SIZE + 2, '');
  });
}

function seriesMarks(
  plot: DrawnPlot,
  series: number,
  points: readonly StackedPoint[],
  layout: RowsLayout,
  palette: Palette,
): string[] {
  const names = plot.series.map(({ name }) => name);
  const [color, opacity] = [colorOf(names, series, palette), opacityOf(names, series)];
  const bars = plot.marks === 'bar' && !plot.stacked ? series : 0;
  return points.flatMap((point) => {
    const row = layout.categories.indexOf(String(point.x));
    const top = layout.top + row * layout.rowHeight + layout.barsDrop + bars * (layout.barHeight + 1);
    const middle = top + layout.barHeight / 2;
    const title = `<title>${escapeXml(pointText(plot, names[series]!, point))}</title>`;
    if (point.y === null) {
      return point.note === undefined
        ? []
        : [text(point.note, layout.left + 6, middle + 4, `fill="${palette.muted}" class="gap-notes"`)];
    }
    const [from, to] = [layout.at(startOf(plot, point, layout)), layout.at(point.offset + point.y)];
    if (plot.marks !== 'bar') {
      return [
        ...errorBar(point, middle, layout, color),
        `<circle cx="${px(to)}" cy="${px(middle)}" r="5" fill="${color}">${title}</circle>`,
      ];
    }
    const bar = `<rect x="${px(Math.min(from, to))}" y="${px(top)}" width="${px(Math.max(1, Math.abs(to - from)))}" height="${layout.barHeight}" fill="${color}" fill-opacity="${opacity}">${title}</rect>`;
    return [
      bar,
      ...errorBar(point, middle, layout, palette.ink),
      ...barEnd(plot, series, point, middle, layout, palette),
    ];
  });
}

function startOf(plot: DrawnPlot, { offset }: StackedPoint, { axis }: RowsLayout): number {
  return plot.y.scale === 'log' ? axis.domain[0] : offset;
}

/** The value after a bar, or after the last of a stack: their sum. */
function barEnd(
  plot: DrawnPlot,
  series: number,
  point: StackedPoint,
  middle: number,
  layout: RowsLayout,
  palette: Palette,
): string[] {
  const isCovered =
    plot.stacked === true &&
    plot.series.slice(series + 1).some(({ points }) => points.some(({ x, y }) => x === point.x && y));
  if (isCovered || (plot.stacked === true && point.y === 0 && point.offset > 0)) return [];
  const value = point.offset + point.y!;
  const end = Math.max(layout.at(value), layout.at(point.offset + (point.high ?? point.y!)));
  return [text(valueText(value), end + 5, middle + 4, haloOf(palette))];
}

function errorBar(
  { low, high, offset }: StackedPoint,
  y: number,
  { at, axis }: RowsLayout,
  color: string,
): string[] {
  if (low === undefined || high === undefined) return [];
  const [from, to] = [at(Math.max(offset + low, axis.domain[0])), at(offset + high)];
  const lines = [
    line(from, y, to, y, color, 1.25),
    line(from, y - 4, from, y + 4, color, 1.25),
    line(to, y - 4, to, y + 4, color, 1.25),
  ];
  return [`<g class="error-bars">${lines.join('')}</g>`];
}

function referenceLines(plot: DrawnPlot, { at, top, bottom }: RowsLayout, palette: Palette): string[] {
  return (plot.references ?? []).map(
    ({ y }) =>
      `<line x1="${px(at(y))}" y1="${px(top)}" x2="${px(at(y))}" y2="${px(bottom)}" stroke="${palette.ink}" stroke-width="1.25" stroke-dasharray="${REFERENCE_DASH}"/>`,
  );
}
