import type { Plot, Point, Series } from '@roofline/reports';
import { isCausal } from '../../../attention/shape.ts';
import type { Pass } from '../../../attention/work.ts';
import { nameOf, type FlashMeasurement, type Measured } from './interpret.ts';

/** What one plot shows: one pass of shapes that differ only in their sequence. */
interface Group {
  readonly id: string;
  readonly title: string;
  readonly measurements: readonly FlashMeasurement[];
}

/** Time against the sequence, one plot for each shape but for that. */
export function timePlots(measurements: readonly FlashMeasurement[], pass: Pass): Plot[] {
  return groupsOf(measurements, pass).flatMap((group) => {
    const series = seriesOf(group, ({ medianMs, lowMs, highMs }) => ({
      y: medianMs,
      low: lowMs,
      high: highMs,
    }));
    return linePlot(series, {
      id: `${pass}-time-${group.id}`,
      title: `Time against sequence: ${group.title}`,
      caption: 'Medians; error bars from a fifth of the samples to four fifths. Both axes logarithmic.',
      y: { label: 'Time', unit: 'ms', scale: 'log' },
    });
  });
}

/** What each attention reaches, next to each peer. */
export function throughputPlots(measurements: readonly FlashMeasurement[], pass: Pass): Plot[] {
  return groupsOf(measurements, pass).flatMap((group): Plot[] => {
    const series = seriesOf(group, ({ flopsPerSecond }) => ({ y: flopsPerSecond / 1e12 }));
    if (series.length === 0) return [];
    return [
      {
        kind: 'plot',
        id: `${pass}-throughput-${group.id}`,
        title: `TFLOP/s by sequence: ${group.title}`,
        caption: 'FLOPs by formula, a causal mask halving them, over the median time.',
        x: { label: 'Sequence', scale: 'category' },
        y: { label: 'Achieved', unit: 'TFLOP/s', scale: 'linear' },
        marks: 'bar',
        series,
        ...roofOf(group),
      },
    ];
  });
}

/** Peak memory against the sequence; it is that of both passes, whichever pass is given. */
export function memoryPlots(measurements: readonly FlashMeasurement[], pass: Pass): Plot[] {
  return groupsOf(measurements, pass).flatMap((group) => {
    const series = seriesOf(group, ({ peakBytes }) =>
      peakBytes === null ? null : { y: peakBytes / 2 ** 20 },
    );
    return linePlot(series, {
      id: `peak-memory-${group.id}`,
      title: `Peak memory against sequence: ${group.title}`,
      caption: 'Of operands and one forward and backward pass. Both axes logarithmic.',
      y: { label: 'Memory', unit: 'MiB', scale: 'log' },
    });
  });
}

function linePlot(series: Series[], plot: Pick<Plot, 'id' | 'title' | 'caption' | 'y'>): Plot[] {
  if (series.length === 0) return [];
  return [{ kind: 'plot', x: { label: 'Sequence', scale: 'log' }, marks: 'line', series, ...plot }];
}

function groupsOf(measurements: readonly FlashMeasurement[], pass: Pass): Group[] {
  const groups = Map.groupBy(
    measurements.filter((each) => each.pass === pass),
    ({ cell }) => {
      const { dtype, batch, heads, headDimension } = cell;
      const id = `${dtype}-b${batch}-h${heads}-d${headDimension}`;
      return isCausal(cell) ? id : `${id}-full`;
    },
  );
  return [...groups].map(([id, group]) => {
    const { cell } = group[0]!;
    const { dtype, batch, heads, headDimension } = cell;
    const words = [
      `d ${headDimension}`,
      `batch ${batch}`,
      ...(heads === 1 ? [] : [`${heads} heads`]),
      ...(isCausal(cell) ? [] : ['full']),
      dtype,
    ];
    const measurements = group.toSorted((a, b) => a.cell.sequence - b.cell.sequence);
    return { id, title: words.join(', '), measurements };
  });
}

/** One series for each attention that was measured anywhere; gaps say why they are there. */
function seriesOf({ measurements }: Group, value: (measured: Measured) => Omit<Point, 'x'> | null): Series[] {
  const named = measurements.filter(({ timed }) => timed !== null);
  const groups = Map.groupBy(named, ({ timed }) => nameOf(timed!));
  return [...groups].flatMap(([name, group]) => {
    const points = group.flatMap(({ cell: { sequence: x }, timed, measured }): Point[] => {
      if (measured === null) return [{ x, y: null, note: timed!.outcome.status }];
      const point = value(measured);
      return point === null ? [] : [{ x, ...point }];
    });
    return points.some(({ y }) => y !== null) ? [{ name, points }] : [];
  });
}

/** The measured ceiling of matrix products of the group's dtype. */
function roofOf({ measurements }: Group): Pick<Plot, 'references'> {
  const { cell, record } = measurements[0]!;
  const peak = record.ceilings?.matmulFlopsPerSecond[cell.dtype];
  return peak === undefined ? {} : { references: [{ label: 'matrix products', y: peak / 1e12 }] };
}
