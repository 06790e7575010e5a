import { formatNumber, formatPercent, type Plot, type Point, type Report } from '@roofline/reports';
import { median } from 'simple-statistics';
import { capitalize } from '../parameters/words.ts';
import { plotsOf } from '../report/series.ts';
import type { Environment } from '../records/environment.ts';
import { flagOfSetting, type TrainSettings } from './settings.ts';
import { isStep, type LogLine, type StepLine, type ValidationLine } from './train-log.ts';

/** Points of a curve at most. */
const mostPoints = 400;

/** What a training came to, of all lines of its log. */
export interface TrainingSummary {
  readonly steps: number;
  /** The mean of the last 20 steps; null where there are none. */
  readonly loss: number | null;
  readonly validationLoss: number | null;
  /** By the median step. */
  readonly tokensPerSecond: number | null;
}

export function summarize(lines: readonly LogLine[], { batch, context }: TrainSettings): TrainingSummary {
  const steps = lines.filter(isStep);
  const losses = steps.slice(-20).flatMap(({ loss }) => loss ?? []);
  const validations = lines.flatMap((line) => (isStep(line) ? [] : (line.validationLoss ?? [])));
  return {
    steps: steps.length,
    loss: losses.length > 0 ? mean(losses) : null,
    validationLoss: validations.at(-1) ?? null,
    tokensPerSecond:
      steps.length > 0 ? (batch * context * 1000) / median(steps.map(({ durationMs }) => durationMs)) : null,
  };
}

/** A training as a page with its curves. */
export function trainReport(
  lines: readonly LogLine[],
  settings: TrainSettings,
  environment: Environment,
  utilization: number | null,
  createdAt: string,
): Report {
  const summary = summarize(lines, settings);
  const [chart, ...curves] = plots(lines);
  return {
    title: claimOf(settings, summary),
    subtitle: `A training on ${settings.data}`,
    createdAt,
    summary: findings(settings, summary, utilization),
    ...(chart && { chart }),
    environment: [
      { label: 'Device', value: environment.device.name },
      { label: 'Node.js', value: environment.node },
    ],
    sections: [
      ...(curves.length > 0 ? [{ id: 'curves', title: 'Curves', blocks: curves }] : []),
      { id: 'settings', title: 'Settings', folded: true, blocks: [settingsTable(settings)] },
    ],
  };
}

function claimOf({ model }: TrainSettings, { steps, loss, validationLoss }: TrainingSummary): string {
  const made = `${model.size} after ${steps.toLocaleString('en')} ${steps === 1 ? 'step' : 'steps'}`;
  if (loss === null) return made;
  const validation =
    validationLoss === null ? '' : `, ${validationLoss.toFixed(3)} on text that it has not seen`;
  return `${made}: a loss of ${loss.toFixed(3)} nats${validation}`;
}

function findings(
  { batch, context }: TrainSettings,
  { steps, tokensPerSecond }: TrainingSummary,
  utilization: number | null,
): string[] {
  const tokens = (steps * batch * context).toLocaleString('en');
  return [
    ...(tokensPerSecond === null
      ? []
      : [
          `It has read ${tokens} tokens, **${formatNumber(tokensPerSecond, 3)} in a second** by the median step.`,
        ]),
    ...(utilization === null
      ? []
      : [`At the end its products took ${formatPercent(utilization)} of what the measured ceiling allows.`]),
  ];
}

function plots(lines: readonly LogLine[]): Plot[] {
  const steps = lines.filter(isStep);
  const validation = lines.filter((line): line is ValidationLine => !isStep(line));
  const x = { label: 'Step' } as const;
  const curve = (id: string, title: string, y: Plot['y'], of: (line: StepLine) => number | null) =>
    plotsOf({ id, title, x, y, marks: 'line', series: seriesOf(title, thinned(steps, of)) });
  return [
    ...plotsOf({
      ...{ id: 'loss', title: 'Loss by step', marks: 'line', x, y: { label: 'Loss', unit: 'nats' } },
      series: [
        ...seriesOf(
          'training',
          thinned(steps, ({ loss }) => loss),
        ),
        ...seriesOf(
          'validation',
          validation.map(({ step, validationLoss }) => ({ x: step, y: validationLoss })),
        ),
      ],
    }),
    ...curve(
      'learning-rate',
      'Learning rate',
      { label: 'Learning rate' },
      ({ learningRate }) => learningRate,
    ),
    ...curve('gradient-norm', 'Norm of the gradients', { label: 'Norm' }, ({ gradientNorm }) => gradientNorm),
    ...curve('step-time', 'Time of a step', { label: 'Step', unit: 'ms', scale: 'log' }, ({ durationMs }) =>
      Math.max(durationMs, 1e-3),
    ),
  ];
}

function seriesOf(name: string, points: Point[]): Plot['series'] {
  return points.length > 0 ? [{ name, points }] : [];
}

/** Means of as many neighbours as leave few enough points; what is not finite is left out. */
function thinned(steps: readonly StepLine[], of: (line: StepLine) => number | null): Point[] {
  const size = Math.ceil(steps.length / mostPoints);
  const groups = Map.groupBy(steps, (_, i) => Math.floor(i / size));
  return [...groups.values()].flatMap((group) => {
    const values = group.flatMap((line) => of(line) ?? []);
    return values.length > 0 ? [{ x: group[Math.floor(group.length / 2)]!.step, y: mean(values) }] : [];
  });
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function settingsTable(settings: TrainSettings): Report['sections'][number]['blocks'][number] {
  const { shape } = settings.model;
  const rows = [
    ...Object.entries(flagOfSetting).map(([name, flag]) => {
      const value = settings[name as keyof TrainSettings];
      return { setting: `--${flag}`, value: typeof value === 'object' ? value.size : String(value) };
    }),
    ...Object.entries(shape).map(([name, value]) => ({ setting: capitalize(name), value: String(value) })),
  ];
  return {
    ...{ kind: 'table', id: 'settings-of-the-training', title: 'Settings' },
    columns: [
      { key: 'setting', label: 'Setting', kind: 'text' },
      { key: 'value', label: 'Value', kind: 'text' },
    ],
    rows,
  };
}
