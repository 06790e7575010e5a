import type { Plot, Series } from '@roofline/reports';
import { errorBarOf } from '../../../measuring/statistics.ts';
import { measuredOf } from '../../../report/measurement.ts';
import { plotsOf, seriesOf, liesFarApart, type PlottedValue } from '../../../report/series.ts';
import { e2eDtypes, modes, stepNames, type E2eCell } from '../parameters.ts';
import { phaseNames } from '../result.ts';
import { peerOf, phasesMs, type MeasuredStep, type StepMeasurement } from './measured.ts';
import { besideStrongest, comparedSteps, hasSeveralPeers, headOfPeers, titleOfPeers } from './peers.ts';

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
  return [timePlot, roofPlot, phasePlot, ratioPlot].flatMap((draw) =>
    byDType.flatMap(([dtype, group]) =>
      draw(group, name).map((plot) =>
        byDType.length === 1
          ? plot
          : { ...plot, id: `${plot.id}-${dtype}`, title: `${plot.title}, ${dtype}` },
      ),
    ),
  );
}

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

function roofPlot(steps: Steps, name: Name): Plot[] {
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
  const phases = phaseNames.map((phase) => [phase, (step: MeasuredStep) => phasesMs(step)[phase]] as const);
  const series = seriesOf({ x: name, y: Object.fromEntries(phases) }, trained as readonly MeasuredStep[]);
  return modelBars({
    ...{ id: 'phases-of-a-train-step', title: 'Where the time of a train step goes', stacked: true },
    caption: 'Medians of the phases, the first one lowest.',
    y: { label: 'Device time', unit: 'ms', scale: 'linear' },
    // Stacked, the phases of a step share its gap.
    series: series.map((each, index) => (index === 0 ? each : withoutNotes(each))),
  });
}

function withoutNotes({ name, points }: Series): Series {
  return { name, points: points.map(({ x, y }) => ({ x, y })) };
}

function ratioPlot(steps: Steps, name: Name): Plot[] {
  const compared = comparedSteps(steps);
  const [title, head] = [titleOfPeers(compared), headOfPeers(compared)];
  return modelBars({
    ...{ id: 'ratio-to-pytorch', title: `Our time over that of ${title}` },
    caption: 'Ratio of the medians of steps measured in turn, with its 95 % interval; lower is faster.',
    y: { label: `Ours / ${head}`, scale: 'linear' },
    series: byMode(compared, name, (step) => {
      const { ratio } = peerOf(step)!;
      return { y: ratio.ratio, ...errorBarOf(ratio) };
    }),
    references: [{ label: head, y: 1 }],
  });
}

const titles = {
  forward: 'A forward pass',
  'forward-backward': 'Forward and backward',
  'train-step': 'A training step',
} as const;

/**
 * Median times by model: ours next to the peer's, of several the strongest, or next to the floor where no peer ran; none where
 * nothing was measured.
 */
export function headline(all: Steps): Plot | null {
  const measured = ofFullestMode(all);
  const compared = comparedSteps(measured);
  const hasSeveral = hasSeveralPeers(compared);
  const steps = hasSeveral ? besideStrongest(compared) : measured;
  const [first] = steps;
  if (!first) return null;
  const names = stepNames(steps, named);
  const dtypes = e2eDtypes.filter((dtype) => steps.some(({ cell }) => cell.dtype === dtype));
  const hasPeer = compared.length > 0;
  const peer = hasSeveral ? 'the strongest peer' : titleOfPeers(compared);
  const series = dtypes.flatMap((dtype) => {
    const shown = seriesOf<MeasuredStep>(
      {
        x: ({ cell }) => names.name(cell),
        y: {
          Roofline: ({ time }) => time!.median,
          ...(hasPeer
            ? { [peer]: (step) => peerOf(step)?.time.median }
            : { floor: ({ floorMs }) => floorMs }),
        },
      },
      steps.filter(({ cell }) => cell.dtype === dtype),
    );
    return dtypes.length === 1 ? shown : shown.map((each) => ({ ...each, name: `${each.name}, ${dtype}` }));
  });
  const beside = hasPeer
    ? `beside ${peer}${hasSeveral ? '' : versionOf(steps)}`
    : 'and the least that the measured ceilings allow';
  const shared = [...(dtypes.length === 1 ? dtypes : []), names.shared].filter(Boolean).join(', ');
  return {
    ...{
      kind: 'plot',
      id: 'at-a-glance',
      title: `${titles[first.cell.mode]} ${beside}`,
      marks: 'bar',
      series,
    },
    caption: `Medians of the device time${shared && ` (${shared})`}; lower is faster.`,
    x: { label: 'Model', scale: 'category' },
    y: { label: 'Time', unit: 'ms', scale: 'linear' },
  };
}

/** The measured steps of the mode with the most phases that was measured: the others repeat them. */
export function ofFullestMode(steps: Steps): MeasuredStep[] {
  const measured = measuredOf(steps);
  const mode = modes.findLast((name) => measured.some(({ cell }) => cell.mode === name));
  return measured.filter(({ cell }) => cell.mode === mode);
}

/** ` 2.11.0`, or nothing where several ran. */
function versionOf(steps: readonly MeasuredStep[]): string {
  const versions = new Set(
    steps.flatMap(({ result: { peer } }) =>
      peer?.status === 'ok' ? (peer.torch ?? peer.jax ?? '').replace(/\+.*/, '') : [],
    ),
  );
  return versions.size === 1 ? ` ${[...versions][0]}` : '';
}
