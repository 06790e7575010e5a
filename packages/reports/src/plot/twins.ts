import type { DrawnPlot } from './defaults.ts';
import { extent } from './domain.ts';

/** Lines closer together than this share of the axis cannot be distinguished. */
const APART = 0.01;
/** So few common points may agree by chance. */
const LEAST_POINTS = 2;

/** The series before this one whose line it lies on, all along; null for none. */
export function twinOf({ series, y: axis }: DrawnPlot, index: number): number | null {
  const place = axis.scale === 'log' ? Math.log : (value: number) => value;
  const values = series.flatMap(({ points }) => points.flatMap(({ y }) => (y === null ? [] : [place(y)])));
  const [low, high] = extent(axis.scale === 'log' ? values : [0, ...values]);
  const own = valuesOf(series[index]!.points);
  const twin = series.slice(0, index).findIndex(({ points }) => {
    const other = valuesOf(points);
    const common = [...own.keys()].filter((x) => other.has(x));
    return (
      common.length >= LEAST_POINTS &&
      common.length === own.size &&
      common.every((x) => Math.abs(place(own.get(x)!) - place(other.get(x)!)) <= APART * (high - low))
    );
  });
  return twin < 0 ? null : twin;
}

function valuesOf(points: DrawnPlot['series'][number]['points']): Map<number | string, number> {
  return new Map(points.flatMap(({ x, y }) => (y === null ? [] : [[x, y] as const])));
}
