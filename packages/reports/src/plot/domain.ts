import { ReportError } from '../model.ts';
import type { DrawnPlot } from './defaults.ts';
import { stackPoints } from './stack.ts';
import { linearTicks, logTicks, tickTexts } from './ticks.ts';

/** An axis ready to be drawn. */
export type ResolvedAxis =
  | { scale: 'linear' | 'log'; domain: [number, number]; ticks: number[]; texts: string[] }
  | { scale: 'category'; domain: string[] };

export type NumericAxis = Extract<ResolvedAxis, { ticks: number[] }>;

/**
 * The horizontal axis; bars are always on categories, numbers of a numeric axis in their order.
 *
 * @throws ReportError for text on a numeric axis, a number that is not finite, or one a logarithm cannot take.
 */
export function resolveX(plot: DrawnPlot, tickCount: number): ResolvedAxis {
  const points = plot.series.flatMap((series) => series.points);
  if (plot.marks === 'bar' || plot.x.scale === 'category') {
    const places = [...new Set(points.map(({ x }) => x))];
    const isNumeric = plot.x.scale !== 'category' && places.every((x) => typeof x === 'number');
    if (isNumeric) places.sort((a, b) => Number(a) - Number(b));
    return { scale: 'category', domain: [...new Set(places.map(String))] };
  }
  const values = points.map(({ x }) => checked(plot, 'x', x));
  if (values.length === 0) return numericAxis(plot.x.scale, [1, 10], [1, 10], tickCount);
  return trimmed(numericAxis(plot.x.scale, extent(values), values, tickCount), extent(values));
}

/** An axis that ends with the data, not with the next round number; as it is where too few ticks would be left. */
export function trimmed(axis: NumericAxis, [low, high]: [number, number]): NumericAxis {
  const kept = axis.ticks.flatMap((tick, index) => (tick >= low && tick <= high ? [index] : []));
  if (kept.length < 2) return axis;
  const pick = <Value>(all: readonly Value[]) => kept.map((index) => all[index]!);
  return { scale: axis.scale, domain: [low, high], ticks: pick(axis.ticks), texts: pick(axis.texts) };
}

/**
 * The vertical axis: from zero for bars and areas, and wherever zero is near; stacked bars count as high as they reach; error bars that end below a
 * logarithmic axis are cut off there.
 *
 * @throws ReportError as {@link resolveX}, and for a vertical axis of categories.
 */
export function resolveY(plot: DrawnPlot, tickCount: number): NumericAxis {
  const { scale } = plot.y;
  if (scale === 'category') throw new ReportError(`plot '${plot.id}': the y axis must be 'linear' or 'log'`);
  if (scale === 'log' && plot.marks === 'bar') {
    throw new ReportError(
      `plot '${plot.id}': bars on a logarithmic y axis have no length to compare; take marks 'dot' or a linear axis`,
    );
  }
  const points = stackPoints(plot).flat();
  const values = [
    ...points.flatMap(({ y, offset }) => (y === null ? [] : [offset + checked(plot, 'y', y)])),
    ...(plot.references ?? []).map(({ y }) => checked(plot, 'y', y)),
  ];
  const ends = points.flatMap(({ low, high, offset }) =>
    [low, high].flatMap((end) => (end === undefined ? [] : [offset + end])),
  );
  const all = [...values, ...ends.filter((end) => Number.isFinite(end) && (scale === 'linear' || end > 0))];
  if (values.length === 0) return numericAxis(scale, scale === 'log' ? [1, 10] : [0, 1], [], tickCount);
  let [low, high] = extent(all);
  if (scale === 'linear') {
    const fromZero = plot.marks === 'bar' || plot.marks === 'area' || low < high / 2;
    if (fromZero) [low, high] = [Math.min(0, low), Math.max(0, high)];
  }
  return numericAxis(scale, [low, high], [], tickCount);
}

/** From `low` to `high`, and on to the next ticks. */
export function numericAxis(
  scale: 'linear' | 'log',
  [low, high]: [number, number],
  values: readonly number[],
  tickCount: number,
): NumericAxis {
  const ticks = scale === 'log' ? logTicks(low, high, tickCount, values) : linearTicks(low, high, tickCount);
  const domain: [number, number] = [Math.min(low, ticks[0]!), Math.max(high, ticks[ticks.length - 1]!)];
  return { scale, domain, ticks, texts: tickTexts(ticks, scale) };
}

function checked(plot: DrawnPlot, axis: 'x' | 'y', value: number | string): number {
  if (typeof value !== 'number' || !Number.isFinite(value)) {
    throw new ReportError(
      `plot '${plot.id}': ${axis} is ${JSON.stringify(String(value))}, the ${plot[axis].scale} axis takes finite ` +
        `numbers${axis === 'y' ? '; give null where there is no value' : ''}`,
    );
  }
  if (plot[axis].scale === 'log' && value <= 0) {
    throw new ReportError(`plot '${plot.id}': ${axis} is ${value}, a log axis takes numbers above 0`);
  }
  return value;
}

/** The least and the most of values, however many. */
export function extent(values: readonly number[]): [number, number] {
  return values.reduce<[number, number]>(
    ([low, high], value) => [Math.min(low, value), Math.max(high, value)],
    [Infinity, -Infinity],
  );
}
