import { formatDuration, formatRatio, type Block, type Plot } from '@roofline/reports';
import { canonicalJson } from '../../records/json.ts';
import { tableOf, type ColumnOf } from '../../report/declared-table.ts';
import { measuredOf, type Measured, type Measurement } from '../../report/measurement.ts';
import { ratioLead, type Lead } from '../../report/lead.ts';
import { ratioRange } from '../../report/ratio-chart.ts';
import { plotsOf, liesFarApart } from '../../report/series.ts';
import { column, timeColumns } from '../../report/standard-columns.ts';
import { cellNames } from '../../parameters/cell-names.ts';
import type { E2eResult } from '../e2e/result.ts';
import { warmupCellParameters, type WarmupCell } from './parameters.ts';

type WarmupMeasurement = Measurement<WarmupCell, E2eResult>;
type MeasuredWarmup = Measured<WarmupCell, E2eResult>;
type Cells = readonly WarmupMeasurement[];

/** What was measured with different numbers of warm-up steps and else alike, the fewest first. */
interface Study {
  readonly name: string;
  readonly cells: Cells;
}

function studies(cells: Cells): Study[] {
  const groups = Map.groupBy(cells, ({ cell }) => canonicalJson({ ...cell, warmup: 0 }));
  const names = cellNames(
    warmupCellParameters,
    cells.map(({ cell }) => cell),
    Object.keys(warmupCellParameters).filter((key) => key !== 'warmup'),
  );
  return [...groups.values()].map((group) => ({
    name: names.name(group[0]!.cell),
    cells: group.toSorted((a, b) => a.cell.warmup - b.cell.warmup),
  }));
}

/** A cell next to the same work with the most warm-up steps. */
type Row = MeasuredWarmup & { readonly warmest: MeasuredWarmup | undefined };

const columns: readonly ColumnOf<Row>[] = [
  column.ms('firstMs', 'First step', ({ samplesMs }) => samplesMs[0], {
    description: 'The first that counts.',
  }),
  ...timeColumns('Mean', 'Mean and standard deviation of the steps that count.'),
  column.ratio('meanRatio', 'Mean / most warm-up', ({ time, warmest }) => time!.mean / warmest!.time!.mean, {
    description: 'Mean over that with the most warm-up steps.',
  }),
];

/** One row a cell, each next to the same work with the most warm-up steps. */
export function warmupTable(cells: Cells) {
  const rows = studies(cells).flatMap((study) => {
    const warmest = measuredOf(study.cells).at(-1);
    return study.cells.map((each) => ({ ...each, warmest }) as Row);
  });
  return tableOf(
    {
      ...{ id: 'warm-up', title: 'Times by warm-up', caption: 'Device time of a step.' },
      ...{ parameters: warmupCellParameters, columns },
    },
    rows,
  );
}

/**
 * The fewest and the most warm-up steps of a study, and the means of all of it over that after the most. Null for a study of
 * fewer than two numbers of warm-up steps.
 */
function contrast({ name, cells }: Study) {
  const measured = measuredOf(cells);
  const [coldest, warmest] = [measured[0], measured.at(-1)];
  if (!coldest || !warmest || coldest === warmest) return null;
  const ratios = measured.map(({ time }) => time!.mean / warmest.time!.mean);
  return { name, measured, coldest, warmest, ratios };
}

type Contrast = NonNullable<ReturnType<typeof contrast>>;

/** What the first step takes; and of each study from how many warm-up steps on it no longer matters. None for a study of one. */
export function warmupFindings(cells: Cells): string[] {
  const contrasted = studies(cells).flatMap((study) => contrast(study) ?? []);
  return [...firstStepFinding(contrasted), ...contrasted.map(settlingFinding)];
}

function firstStepFinding(contrasted: readonly Contrast[]): string[] {
  const firsts = contrasted.map(({ coldest, warmest }) => ({
    ms: coldest.samplesMs[0]!,
    ratio: coldest.samplesMs[0]! / warmest.time!.median,
  }));
  if (firsts.length === 0) return [];
  const inOrder = firsts.map(({ ms }) => ms).sort((a, b) => a - b);
  const times = [...new Set([inOrder[0]!, inOrder.at(-1)!].map((ms) => formatDuration(ms)))].join(' to ');
  const ratios = ratioRange(firsts.map(({ ratio }) => ratio));
  return [`The first step that counts takes **${ratios}** of the median (${times}).`];
}

function settlingFinding({ name, measured, coldest, warmest, ratios }: Contrast): string {
  const steady = measured[1 + ratios.findLastIndex((ratio) => Math.abs(ratio - 1) > 0.05)]!;
  const settles = steady === warmest ? '' : `; from ${stepCount(steady)} on it is within 5 %`;
  return (
    `After ${stepCount(coldest)} the mean step of ${name} takes **${formatRatio(ratios[0]!)}** the time that it takes ` +
    `after ${stepCount(warmest)}${settles}.`
  );
}

/** The mean step after each number of warm-up steps, compared with that after the most. */
export function lead(cells: Cells): Lead | null {
  const found = studies(cells).flatMap((study) => contrast(study) ?? []);
  const counts = [...new Set(found.map(({ warmest }) => stepCount(warmest)))];
  const theirs = counts.length === 1 ? counts[0]! : 'Most warm-up';
  const fewest = new Set(found.map(({ coldest }) => stepCount(coldest)));
  const after = fewest.size === 1 ? [...fewest][0]! : 'the fewest warm-up steps';
  const coldRatios = found.map(({ ratios }) => ratios[0]!);
  return ratioLead(
    {
      ...{ title: `Mean steps vs those after ${counts.join(' or ')}`, ours: 'Mean', theirs },
      caption:
        'Mean device time of the steps that count, each number of warm-up steps in a process of its own.',
      parameters: warmupCellParameters,
      named: [...['size', 'context', 'batch', 'mode', 'dtype', 'attention', 'execution'], 'warmup'],
    },
    found.flatMap(({ measured, warmest }) =>
      measured
        .filter((each) => each !== warmest)
        .map(({ cell, time }) => ({ cell, ours: time!.mean, theirs: warmest.time!.mean })),
    ),
    () =>
      `After ${after} a mean step takes ${ratioRange(coldRatios)} of its time after ${counts.join(' or ')}`,
  );
}

function stepCount({ cell: { warmup } }: WarmupMeasurement): string {
  return `${warmup} warm-up ${warmup === 1 ? 'step' : 'steps'}`;
}

/** Every step of each process that counts, at its place since the process began. */
export function stepPlots(cells: Cells): Block[] {
  return studies(cells).flatMap(({ name, cells }, index): Plot[] => {
    const series = measuredOf(cells).map((each) => ({
      name: stepCount(each),
      points: each.samplesMs.map((y, step) => ({ x: each.cell.warmup + step + 1, y })),
    }));
    return plotsOf({
      ...{ id: `step-times-${index + 1}`, title: `Time of each step: ${name}`, marks: 'line', series },
      caption: 'Steps are counted from the start of the process; warm-up steps are not drawn.',
      x: { label: 'Step', scale: 'linear' },
      y: { label: 'Device time', unit: 'ms', scale: liesFarApart(series, 5) ? 'log' : 'linear' },
    });
  });
}
