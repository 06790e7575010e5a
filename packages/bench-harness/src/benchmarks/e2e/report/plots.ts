import type { Plot, Series } from '@roofline/reports';
import { measuredOf } from '../../../report/measurement.ts';
import { plotsOf, seriesOf, liesFarApart, type PlottedValue } from '../../../report/series.ts';
import { modes, stepNames, type E2eCell } from '../parameters.ts';
import { phaseNames, type PhaseName } from '../result.ts';
import { phasesMs, type MeasuredStep, type StepMeasurement } from './measured.ts';

type Steps = readonly StepMeasurement[];
type Name = (step: StepMeasurement) => string;

/** What distinguishes steps of one mode and dtype. */
const named: readonly (keyof E2eCell)[] = [
  ...(['size', 'context', 'batch'] as const),
  ...(['attention', 'execution', 'peerAttention', 'peerExecution'] as const),
];

/** The plots that the records give ground for, each once for every dtype: their times are not to be mixed up. */
export function stepPlots(steps: Steps): Plot[] {
  const names = stepNames(steps, named);
  const name: Name = ({ cell }) => names.name(cell);
  const byDType = [...Map.groupBy(steps, ({ cell }) => cell.dtype)];
  return [timePlot, roofPlot, phasePlot].flatMap((draw) =>
    byDType.flatMap(([dtype, group]) =>
      draw(group, name).map((plot) =>
        byDType.length === 1
          ? plot
          : { ...plot, id: `${plot.id}-${dtype}`, title: `${plot.title}, ${dtype}` },
      ),
    ),
  );
}

/** Steps so many times apart have no parts to compare on one axis. */
const LIKE_SIZES = 10;

/** Bars over the models. */
function modelBars(plot: Omit<Plot, 'kind' | 'x' | 'marks'> & Partial<Pick<Plot, 'marks'>>): Plot[] {
  return plotsOf({ x: { label: 'Model', scale: 'category' }, marks: 'bar', ...plot });
}

/** One series a mode, in the order of modes. */
function byMode(steps: Steps, name: Name, y: (step: MeasuredStep) => PlottedValue): Series[] {
  const series = seriesOf({ name: ({ cell }) => cell.mode, x: name, y }, steps as readonly MeasuredStep[]);
  return modes.flatMap((mode) => series.filter((each) => each.name === mode));
}

function timePlot(steps: Steps, name: Name): Plot[] {
  const series = byMode(steps, name, ({ time }) => ({
    y: time!.mean,
    low: Math.max(time!.min, time!.mean - time!.std),
    high: time!.mean + time!.std,
  }));
  // Bars on a logarithm have no length to compare: dots then.
  const isWide = liesFarApart(series);
  return modelBars({
    ...{ id: 'time-by-size', title: 'Time of one step', series, marks: isWide ? 'dot' : 'bar' },
    caption: 'Mean of the device time; error bars are one standard deviation.',
    y: { label: 'Time', unit: 'ms', scale: isWide ? 'log' : 'linear' },
  });
}

/** How near steps come to the least time that the device allows. */
export function roofPlot(steps: Steps, name: Name): Plot[] {
  return modelBars({
    ...{ id: 'share-of-the-roof', title: 'Share of the roof' },
    caption: "The least time under this device's measured ceilings, over the time taken.",
    y: { label: 'Share of the roof', unit: '%', scale: 'linear' },
    series: byMode(steps, name, ({ roofShare }) => (roofShare === null ? null : 100 * roofShare)),
    references: [{ label: 'roof', y: 100 }],
  });
}

function phasePlot(steps: Steps, name: Name): Plot[] {
  const trained = steps.filter(({ cell }) => cell.mode === 'train-step');
  const isWhole = ({ cell }: StepMeasurement) => cell.execution !== 'eager';
  const phased = trained.filter((step) => !isWhole(step)) as MeasuredStep[];
  const isWide = liesFarApart(seriesOf({ x: name, y: ({ time }) => time?.median }, phased), LIKE_SIZES);
  const part = (step: MeasuredStep, phase: PhaseName) => {
    const [all, own] = [phasesMs(step), phasesMs(step)[phase]];
    if (own === undefined || !isWide) return own;
    return (100 * own) / Object.values(all).reduce((sum, ms) => sum + ms, 0);
  };
  const phases = phaseNames.map((phase) => [phase, (step: MeasuredStep) => part(step, phase)] as const);
  const series = seriesOf({ x: name, y: Object.fromEntries(phases) }, phased);
  const whole = trained.some(isWhole)
    ? ' Compiled steps are one program, whose kernels are fused across phases: they have no parts to time and are not here.'
    : '';
  return modelBars({
    ...{ id: 'phases-of-a-train-step', title: 'Where the time of a train step goes', stacked: true },
    caption: `Medians of the phases, forward first${isWide ? ', as shares of their sum' : ''}.${whole}`,
    y: isWide
      ? { label: 'Share of the step', unit: '%', scale: 'linear' }
      : { label: 'Device time', unit: 'ms', scale: 'linear' },
    // Stacked, the phases of a step share its gap.
    series: series.map((each, index) => (index === 0 ? each : withoutNotes(each))),
  });
}

function withoutNotes({ name, points }: Series): Series {
  return { name, points: points.map(({ x, y }) => ({ x, y })) };
}

/** The measured steps of the mode with the most phases that was measured: the others repeat them. */
export function ofFullestMode(steps: Steps): MeasuredStep[] {
  const measured = measuredOf(steps);
  const mode = modes.findLast((name) => measured.some(({ cell }) => cell.mode === name));
  return measured.filter(({ cell }) => cell.mode === mode);
}
