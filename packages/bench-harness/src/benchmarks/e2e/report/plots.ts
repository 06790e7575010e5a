import type { Plot, Point, Series } from '@roofline/reports';
import { errorBarOf } from '../../../measuring/statistics.ts';
import { modes } from '../parameters.ts';
import { phaseNames } from '../result.ts';
import { cellNames } from '../../../report/cell-names.ts';
import type { E2eMeasurement, Measured } from './interpret.ts';

/** The plots that the records give ground for, each once for every dtype: their times are not to be mixed up. */
export function e2ePlots(measurements: readonly E2eMeasurement[]): Plot[] {
  const names = cellNames(
    measurements.map(({ cell }) => cell),
    ['size', 'context', 'batch', 'attention', 'execution', 'peerAttention', 'peerExecution'],
  );
  const label: Label = ({ cell }) => names.name(cell);
  const byDType = [...Map.groupBy(measurements, ({ cell }) => cell.dtype)];
  return [timePlot, roofPlot, phasePlot, ratioPlot].flatMap((draw) =>
    byDType.flatMap(([dtype, group]) => {
      const plot = draw(group, label);
      if (plot === null || byDType.length === 1) return plot ?? [];
      return { ...plot, id: `${plot.id}-${dtype}`, title: `${plot.title}, ${dtype}` };
    }),
  );
}

type Label = (measurement: E2eMeasurement) => string;

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
  // Bars on a logarithm have no length to compare: dots then.
  const isWide = spansDecades(series);
  return modelBars(series, {
    id: 'time-by-size',
    title: 'Time of one step',
    caption: 'Mean of the device time; error bars are one standard deviation.',
    y: { label: 'Time', unit: 'ms', scale: isWide ? 'log' : 'linear' },
    marks: isWide ? 'dot' : 'bar',
  });
}

/** Bars over the models, unless `marks` says otherwise; null where nothing was measured. */
function modelBars(
  series: Series[],
  plot: Pick<Plot, 'id' | 'title' | 'caption' | 'y' | 'stacked' | 'references'> &
    Partial<Pick<Plot, 'marks'>>,
): Plot | null {
  if (series.length === 0) return null;
  return { kind: 'plot', x: { label: 'Model', scale: 'category' }, marks: 'bar', series, ...plot };
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
  return modelBars(series, {
    id: 'share-of-the-roof',
    title: 'Share of the roof',
    caption: "The least time under this device's measured ceilings, over the time taken.",
    y: { label: 'Share of the roof', unit: '%', scale: 'linear' },
    references: [{ label: 'roof', y: 100 }],
  });
}

function phasePlot(measurements: readonly E2eMeasurement[], label: Label): Plot | null {
  const steps = measurements.filter(({ cell }) => cell.mode === 'train-step');
  if (steps.every(({ measured }) => measured === null)) return null;
  const series = phaseNames.map((name) => ({
    name,
    points: steps.map((step): Point => {
      const { measured, record } = step;
      const x = label(step);
      if (measured !== null) return { x, y: measured.phasesMs[name] ?? null };
      return name === 'forward' ? { x, y: null, note: record.status } : { x, y: null };
    }),
  }));
  return modelBars(series, {
    id: 'phases-of-a-train-step',
    title: 'Where the time of a train step goes',
    caption: 'Medians of the phases, the first one lowest.',
    y: { label: 'Device time', unit: 'ms', scale: 'linear' },
    stacked: true,
  });
}

function ratioPlot(measurements: readonly E2eMeasurement[], label: Label): Plot | null {
  const compared = measurements.filter(({ measured }) => measured?.peer);
  const series = seriesByMode(compared, label, ({ peer }) =>
    peer ? { y: peer.ratio.ratio, ...errorBarOf(peer.ratio) } : null,
  );
  return modelBars(series, {
    id: 'ratio-to-pytorch',
    title: 'Our time over that of PyTorch',
    caption: 'Ratio of the medians of steps measured in turn, with its 95 % interval; lower is faster.',
    y: { label: 'Ours / PyTorch', scale: 'linear' },
    references: [{ label: 'PyTorch', y: 1 }],
  });
}
