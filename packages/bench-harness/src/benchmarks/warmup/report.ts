import { formatDuration, formatRatio, type Block, type Plot } from '@roofline/reports';
import { canonicalJson } from '../../records/json.ts';
import { tableOf, type ColumnOf } from '../../report/declared-table.ts';
import { measuredOf, type Measured, type Measurement } from '../../report/measurement.ts';
import { plotsOf, liesFarApart } from '../../report/series.ts';
import { column, timeColumns } from '../../report/standard-columns.ts';
import { cellWords } from '../../parameters/cell-names.ts';
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
  const keys = Object.keys(warmupCellParameters).filter((key) => key !== 'warmup');
  return [...groups.values()].map((group) => ({
    name: cellWords(warmupCellParameters, group[0]!.cell, keys).join(', '),
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

/** None for a study of fewer than two numbers of warm-up steps. */
export function warmupFindings(cells: Cells): string[] {
  return studies(cells).flatMap((study) => {
    const measured = measuredOf(study.cells);
    const [coldest, warmest] = [measured[0], measured.at(-1)];
    if (!coldest || !warmest || coldest === warmest) return [];
    const ratios = measured.map(({ time }) => time!.mean / warmest.time!.mean);
    const first = coldest.samplesMs[0]!;
    const steady = measured[1 + ratios.findLastIndex((ratio) => Math.abs(ratio - 1) > 0.05)]!;
    const settles = steady === warmest ? '' : `; from ${stepCount(steady)} on it is within 5 %`;
    return [
      `Warm-up (${study.name}): after ${stepCount(coldest)} the mean step takes **${formatRatio(ratios[0]!)}** the time ` +
        `that it takes after ${stepCount(warmest)}${settles}; the first step alone takes ` +
        `${formatRatio(first / warmest.time!.median)} the median (${formatDuration(first)}).`,
    ];
  });
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
