import { formatNumber } from '../table/format.ts';
import type { DrawnPlot } from './defaults.ts';

/** Of more values than this only the first and the last are said. */
const MOST_VALUES = 8;

/** What a reader hears who does not see a plot: the values of each series, or of many where they begin and end. */
export function inWords({ title, y, series }: DrawnPlot): string {
  const unit = y.unit === undefined ? '' : ` ${y.unit}`;
  const phrases = series.map(({ name, points }) => {
    const values = points.map((point) => {
      const value = point.y === null ? (point.note ?? 'not measured') : `${formatNumber(point.y, 3)}${unit}`;
      return `${typeof point.x === 'number' ? point.x.toLocaleString('en-US') : point.x} ${value}`;
    });
    const said = values.length <= MOST_VALUES ? values.join(', ') : `${values[0]} to ${values.at(-1)}`;
    return name === '' ? said : `${name}: ${said}`;
  });
  return [title, ...phrases].join('. ');
}
