import type { Plot, Point, Series } from '@roofline/reports';
import { modes } from '../e2e/parameters.ts';
import { phaseNames } from '../e2e/result.ts';
import type { E2eMeasurement, Measured } from './e2e-rows.ts';

/** The plots that the records give ground for. */
export function e2ePlots(measurements: readonly E2eMeasurement[]): Plot[] {
  const label = labeller(measurements);
  return [
    timePlot(measurements, label),
    roofPlot(measurements, label),
    phasePlot(measurements, label),
    ratioPlot(measurements, label),
  ].flatMap((plot) => plot ?? []);
}

type Label = (measurement: E2eMeasurement) => string;

/** Names a configuration by its size and by those of the other parameters that are swept. */
function labeller(measurements: readonly E2eMeasurement[]): Label {
  const varies = (key: 'context' | 'batch' | 'dtype') =>
    new Set(measurements.map(({ cell }) => cell[key])).size > 1;
  const [contexts, batches, dtypes] = [varies('context'), varies('batch'), varies('dtype')];
  return ({ cell }) =>
    [
      cell.size,
      ...(contexts ? [`context ${cell.context}`] : []),
      ...(batches ? [`batch ${cell.batch}`] : []),
      ...(dtypes ? [cell.dtype] : []),
    ].join(', ');
}

/** One series a mode, one point a configuration. */
function seriesByMode(
  measurements: readonly E2eMeasurement[],
  label: Label,
  point: (measured: Measured) => Omit<Point, 'x'> | null,
): Series[] {
  return modes.flatMap((mode) => {
    const points = measurements
      .filter(({ cell }) => cell.mode === mode)
      .flatMap((measurement): Point[] => {
        const x = label(measurement);
        if (measurement.measured === null) return [{ x, y: null, note: measurement.record.status }];
        const value = point(measurement.measured);
        return value === null ? [] : [{ x, ...value }];
      });
    return points.some(({ y }) => y !== null) ? [{ name: mode, points }] : [];
  });
}

function timePlot(measurements: readonly E2eMeasurement[], label: Label): Plot | null {
  const series = seriesByMode(measurements, label, ({ device }) => ({
    y: device.mean,
    low: Math.max(device.min, device.mean - device.std),
    high: device.mean + device.std,
  }));
  if (series.length === 0) return null;
  return {
    kind: 'plot',
    id: 'time-by-size',
    title: 'Time of one step',
    caption: 'Mean of the device time; error bars are one standard deviation.',
    x: { label: 'Model', scale: 'category' },
    y: { label: 'Time', unit: 'ms', scale: spansDecades(series) ? 'log' : 'linear' },
    marks: 'bar',
    series,
  };
}

/** On a linear axis bars below a fiftieth of the longest cannot be seen. */
function spansDecades(series: readonly Series[]): boolean {
  const values = series.flatMap(({ points }) => points.flatMap(({ y }) => y ?? []));
  return Math.max(...values) > 50 * Math.min(...values);
}

function roofPlot(measurements: readonly E2eMeasurement[], label: Label): Plot | null {
  const series = seriesByMode(measurements, label, ({ roofShare }) =>
    roofShare === null ? null : { y: 100 * roofShare },
  );
  if (series.length === 0) return null;
  return {
    kind: 'plot',
    id: 'share-of-the-roof',
    title: 'Share of the roof',
    caption: "The least time under this device's measured ceilings, over the time taken.",
    x: { label: 'Model', scale: 'category' },
    y: { label: 'Share of the roof', unit: '%', scale: 'linear' },
    marks: 'bar',
    series,
    references: [{ label: 'roof', y: 100 }],
  };
}

function phasePlot(measurements: readonly E2eMeasurement[], label: Label): Plot | null {
  const steps = measurements.filter(({ cell }) => cell.mode === 'train-step');
  if (steps.every(({ measured }) => measured === null)) return null;
  return {
    kind: 'plot',
    id: 'phases-of-a-train-step',
    title: 'Where the time of a train step goes',
    caption: 'Medians of the phases, the first one lowest.',
    x: { label: 'Model', scale: 'category' },
    y: { label: 'Device time', unit: 'ms', scale: 'linear' },
    marks: 'bar',
    stacked: true,
    series: phaseNames.map((name) => ({
      name,
      points: steps.map((step): Point => {
        const { measured, record } = step;
        const x = label(step);
        if (measured !== null) return { x, y: measured.phasesMs[name] ?? null };
        return name === 'forward' ? { x, y: null, note: record.status } : { x, y: null };
      }),
    })),
  };
}

function ratioPlot(measurements: readonly E2eMeasurement[], label: Label): Plot | null {
  const compared = measurements.filter(({ measured }) => measured?.peer);
  const series = seriesByMode(compared, label, ({ peer }) =>
    peer ? { y: peer.ratio.ratio, low: peer.ratio.low, high: peer.ratio.high } : null,
  );
  if (series.length === 0) return null;
  return {
    kind: 'plot',
    id: 'ratio-to-pytorch',
    title: 'Our time over that of PyTorch',
    caption: 'Ratio of the medians of steps measured in turn, with its 95 % interval; lower is faster.',
    x: { label: 'Model', scale: 'category' },
    y: { label: 'Ours / PyTorch', scale: 'linear' },
    marks: 'bar',
    series,
    references: [{ label: 'PyTorch, eager', y: 1 }],
  };
}
