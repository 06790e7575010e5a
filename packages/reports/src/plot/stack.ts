import { ReportError } from '../model.ts';
import type { Point } from '../model.ts';
import type { DrawnPlot } from './defaults.ts';

/** A point, and the height at which its bar begins: that of the bars below it, 0 where nothing is stacked. */
export interface StackedPoint extends Point {
  offset: number;
}

/**
 * The points of each series with their offsets.
 *
 * @throws ReportError for what cannot be stacked: other marks than bars, a logarithmic axis, negative heights.
 */
export function stackPoints(plot: DrawnPlot): StackedPoint[][] {
  const { id, marks, series, stacked = false, y: axis } = plot;
  if (!stacked) return series.map(({ points }) => points.map((point) => ({ ...point, offset: 0 })));
  if (marks !== 'bar' || axis.scale !== 'linear') {
    throw new ReportError(
      `plot '${id}': only bars on a linear y axis can be stacked, not ${marks}s on a ${axis.scale} one`,
    );
  }
  const heights = new Map<string, number>();
  return series.map(({ points }) =>
    points.map((point) => {
      const height = point.y ?? 0;
      if (height < 0)
        throw new ReportError(`plot '${id}': y is ${height}, stacked bars take no negative numbers`);
      const offset = heights.get(String(point.x)) ?? 0;
      heights.set(String(point.x), offset + height);
      return { ...point, offset };
    }),
  );
}
