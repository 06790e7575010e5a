import type { Axis, Plot } from '../model.ts';

type DrawnAxis = Axis & { scale: NonNullable<Axis['scale']> };

/** A plot that says all that it may leave out. */
export interface DrawnPlot extends Plot {
  x: DrawnAxis;
  y: DrawnAxis;
  marks: NonNullable<Plot['marks']>;
}

/** Lines on linear axes; where some place is text, along categories. */
export function withDefaults(plot: Plot): DrawnPlot {
  const { x, y, marks = 'line', series } = plot;
  const isText = series.some(({ points }) => points.some((point) => typeof point.x === 'string'));
  return {
    ...plot,
    marks,
    x: { ...x, scale: x.scale ?? (isText ? 'category' : 'linear') },
    y: { ...y, scale: y.scale ?? 'linear' },
  };
}
