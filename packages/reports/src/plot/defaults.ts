import type { Axis, Plot, Point } from '../model.ts';

type DrawnAxis = Axis & { scale: NonNullable<Axis['scale']> };

/** A plot that says all that it may leave out. */
export interface DrawnPlot extends Plot {
  x: DrawnAxis;
  y: DrawnAxis;
  marks: NonNullable<Plot['marks']>;
}

/** Lines on linear axes; where some place is text, along categories. Lines of one place are bars, each of its series. */
export function withDefaults(plot: Plot): DrawnPlot {
  const { x, y, marks = 'line', series } = plot;
  const isText = series.some(({ points }) => points.some((point) => typeof point.x === 'string'));
  const drawn: DrawnPlot = {
    ...plot,
    marks,
    x: { ...x, scale: x.scale ?? (isText ? 'category' : 'linear') },
    y: { ...y, scale: y.scale ?? 'linear' },
  };
  return isOnePlace(drawn) ? asBars(drawn) : drawn;
}

/** Lines of a single point each, which their axes can take. */
function isOnePlace({ marks, series, x, y }: DrawnPlot): boolean {
  if (marks === 'bar' || marks === 'dot' || series.length === 0) return false;
  const fits = (value: unknown, { scale }: DrawnAxis) =>
    scale === 'category' || (Number.isFinite(value) && (scale === 'linear' || Number(value) > 0));
  const isFit = (point: Point) => fits(point.x, x) && (point.y === null || fits(point.y, y));
  return series.every(({ points }) => points.length === 1 && points.every(isFit));
}

/** A line through one point is none. */
function asBars(plot: DrawnPlot): DrawnPlot {
  const places = new Set(plot.series.map(({ points }) => String(points[0]!.x)));
  if (places.size > 1) return { ...plot, marks: 'dot' };
  return {
    ...plot,
    marks: 'bar',
    x: { ...plot.x, scale: 'category' },
    y: { ...plot.y, scale: 'linear' },
  };
}
