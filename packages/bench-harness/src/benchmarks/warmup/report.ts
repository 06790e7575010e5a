import {
  formatDuration,
  formatRatio,
  type Column,
  type Plot,
  type Point,
  type Report,
  type Row,
  type Table,
} from '@roofline/reports';
import { sizeName } from '../e2e/parameters.ts';
import { e2eResult } from '../e2e/result.ts';
import { canonicalJson } from '../../records/json.ts';
import type { CellRecord } from '../../records/record.ts';
import { summarize, type Summary } from '../../measuring/statistics.ts';
import { warmupCell, type WarmupCell } from './parameters.ts';
import { cellRow } from '../../report/cell-row.ts';
import { configurationColumns, sharedCaption } from '../../report/configuration-columns.ts';
import { parameterColumn } from '../../report/parameter-titles.ts';
import { reportHead } from '../../report/report-head.ts';

/** A record with its times; null unless status is `ok`. */
interface WarmupMeasurement {
  readonly cell: WarmupCell;
  readonly record: CellRecord;
  readonly deviceMs: readonly number[] | null;
}

/** What was measured with different numbers of warm-up steps and else alike, the fewest first. */
interface Study {
  readonly name: string;
  readonly measurements: readonly WarmupMeasurement[];
}

type Measured = WarmupMeasurement & { readonly deviceMs: readonly number[] };

const warmupColumns: Column[] = [
  { ...parameterColumn('warmup', 'number'), description: 'Steps before those that count.' },
  {
    key: 'firstMs',
    label: 'First step',
    unit: 'ms',
    kind: 'duration',
    description: 'The first that counts.',
  },
  {
    ...{ key: 'meanMs', label: 'Mean', unit: 'ms', kind: 'duration' },
    ...{ uncertaintyKey: 'stdMs', qualifies: 'medianMs' },
  },
  { key: 'medianMs', label: 'Median', unit: 'ms', kind: 'duration', emphasis: 'strong' },
  {
    key: 'meanRatio',
    label: 'Mean / most warm-up',
    kind: 'ratio',
    description: 'Mean over that with the most warm-up steps.',
  },
];

function interpret(record: CellRecord): WarmupMeasurement {
  const cell = warmupCell.parse(record.parameters);
  const deviceMs = record.status === 'ok' ? e2eResult.parse(record.result).deviceMs : null;
  return { cell, record, deviceMs };
}

function studies(records: readonly CellRecord[]): Study[] {
  const groups = Map.groupBy(records.map(interpret), ({ cell }) => canonicalJson({ ...cell, warmup: 0 }));
  return [...groups.values()].map((measurements) => {
    const { cell } = measurements[0]!;
    const { mode, context, batch, dtype } = cell;
    return {
      name: `${sizeName(cell)}, ${mode}, context ${context}, batch ${batch}, ${dtype}`,
      measurements: measurements.toSorted((a, b) => a.cell.warmup - b.cell.warmup),
    };
  });
}

function measuredOf({ measurements }: Study): Measured[] {
  return measurements.filter((each): each is Measured => each.deviceMs !== null);
}

/** One row a cell, each next to the same work with the most warm-up steps. */
export function warmupTable(records: readonly CellRecord[]): Table {
  const rows = studies(records).flatMap((study) => {
    const warmest = measuredOf(study).at(-1);
    const reference = warmest ? summarize(warmest.deviceMs) : null;
    return study.measurements.map((measurement) => tableRow(measurement, reference));
  });
  return {
    kind: 'table',
    id: 'warm-up',
    title: 'Times by warm-up',
    caption: `Device time of a step. ${sharedCaption(rows)}`.trim(),
    columns: [...configurationColumns(rows), ...warmupColumns],
    rows,
  };
}

function tableRow({ cell, record, deviceMs }: WarmupMeasurement, reference: Summary | null): Row {
  const row = cellRow(cell, record);
  if (deviceMs === null) return row;
  const { mean, median, std, count } = summarize(deviceMs);
  return {
    ...row,
    firstMs: deviceMs[0]!,
    meanMs: mean,
    // One step has no spread.
    stdMs: count > 1 ? std : null,
    medianMs: median,
    meanRatio: reference && mean / reference.mean,
  };
}

export function warmupReport(records: readonly CellRecord[]): Report {
  const all = studies(records);
  return {
    ...reportHead('Warm-up', records),
    summary: all.flatMap(warmupSentence),
    sections: [
      {
        id: 'warm-up-study',
        title: 'Warm-up',
        text: ['Each row ran in a process of its own, in which no step had run before.'],
        blocks: [warmupTable(records), ...all.flatMap(stepPlot)],
      },
    ],
  };
}

/** None for a study of fewer than two numbers of warm-up steps. */
function warmupSentence(study: Study): string[] {
  const measured = measuredOf(study);
  const [coldest, warmest] = [measured[0], measured.at(-1)];
  if (!coldest || !warmest || coldest === warmest) return [];
  const means = measured.map(({ deviceMs }) => summarize(deviceMs).mean);
  const ratio = (mean: number) => `**${formatRatio(mean / means.at(-1)!)}**`;
  const first = coldest.deviceMs[0]! / summarize(warmest.deviceMs).median;
  const steady = measured[1 + means.findLastIndex((mean) => Math.abs(mean / means.at(-1)! - 1) > 0.05)]!;
  const settles = steady === warmest ? '' : `; from ${stepCount(steady)} on it is within 5 %`;
  return [
    `Warm-up (${study.name}): after ${stepCount(coldest)} the mean step takes ${ratio(means[0]!)} the time that it ` +
      `takes after ${stepCount(warmest)}${settles}; the first step alone takes ${formatRatio(first)} the median ` +
      `(${formatDuration(coldest.deviceMs[0]!)}).`,
  ];
}

function stepCount({ cell }: WarmupMeasurement): string {
  return `${cell.warmup} warm-up ${cell.warmup === 1 ? 'step' : 'steps'}`;
}

/** Every step of each process that counts, at its place since the process began. */
function stepPlot(study: Study, index: number): Plot[] {
  const measured = measuredOf(study);
  if (measured.length === 0) return [];
  const { min, max } = summarize(measured.flatMap(({ deviceMs }) => deviceMs));
  return [
    {
      kind: 'plot',
      id: `step-times-${index + 1}`,
      title: `Time of each step: ${study.name}`,
      caption: 'Steps are counted from the start of the process; warm-up steps are not drawn.',
      x: { label: 'Step', scale: 'linear' },
      y: {
        label: 'Device time',
        unit: 'ms',
        scale: max > 5 * min ? 'log' : 'linear',
      },
      marks: 'line',
      series: measured.map((measurement) => ({
        name: stepCount(measurement),
        points: measurement.deviceMs.map((y, step): Point => ({ x: measurement.cell.warmup + step + 1, y })),
      })),
    },
  ];
}
