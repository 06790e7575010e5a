import type { Plot, Point, Series } from '@roofline/reports';
import { attentionKinds } from '../../../attention/kinds.ts';
import { attentionName } from '../parameters.ts';
import type { AttentionMeasurement } from './interpret.ts';

type Measured = NonNullable<AttentionMeasurement['measured']>;

/** The measurements of one plot, which differ in their attention and sequence. */
interface Group {
  readonly id: string;
  readonly title: string;
  readonly measurements: readonly AttentionMeasurement[];
}

/** Forward and backward time against the sequence, one plot a dtype, batch and head dimension. */
export function timePlots(measurements: readonly AttentionMeasurement[]): Plot[] {
  return plotsOf(measurements, (group) => ({
    id: `time-${group.id}`,
    title: `Time against sequence: ${group.title}`,
    caption: 'Medians; both axes logarithmic.',
    y: { label: 'Time', unit: 'ms', scale: 'log' },
    series: (['forward', 'backward'] as const).flatMap((pass) =>
      seriesOf(group, pass, (measured) => measured[pass]?.device.median ?? null),
    ),
  }));
}

/** Memory in use before backward against the sequence, with what follows from the formula. */
export function memoryPlots(measurements: readonly AttentionMeasurement[]): Plot[] {
  const toMebibytes = (bytes: number) => bytes / 2 ** 20;
  return plotsOf(measurements, (group) => ({
    id: `memory-${group.id}`,
    title: `Memory before backward against sequence: ${group.title}`,
    caption: 'Both axes logarithmic: a square rises twice as steeply as what is linear.',
    y: { label: 'Memory', unit: 'MiB', scale: 'log' },
    series: [
      ...formulaSeries(group, toMebibytes),
      ...seriesOf(
        group,
        'measured',
        ({ memory }) => memory.beforeBackwardBytes && toMebibytes(memory.beforeBackwardBytes),
      ),
    ],
  }));
}

function plotsOf(
  measurements: readonly AttentionMeasurement[],
  plot: (group: Group) => Pick<Plot, 'id' | 'title' | 'caption' | 'y' | 'series'>,
): Plot[] {
  return groupsOf(measurements).flatMap((group): Plot[] => {
    const drawn = plot(group);
    if (drawn.series.length === 0) return [];
    const x = { label: 'Sequence', scale: 'log' as const };
    return [{ kind: 'plot', x, marks: 'line', ...drawn }];
  });
}

function groupsOf(measurements: readonly AttentionMeasurement[]): Group[] {
  const groups = Map.groupBy(
    measurements,
    ({ cell: { dtype, batch, headDimension } }) => `${dtype}-b${batch}-d${headDimension}`,
  );
  return [...groups].map(([id, group]) => {
    const { dtype, batch, headDimension } = group[0]!.cell;
    const measurements = group.toSorted((a, b) => a.cell.sequence - b.cell.sequence);
    return { id, title: `d ${headDimension}, batch ${batch}, ${dtype}`, measurements };
  });
}

/** A line for each attention that was measured anywhere; gaps say why they are there. */
function seriesOf(
  { measurements }: Group,
  what: string,
  value: (measured: Measured) => number | null,
): Series[] {
  const byKind = measurements.toSorted((a, b) => kindOf(a) - kindOf(b));
  return [...new Set(byKind.map(({ cell }) => attentionName(cell)))].flatMap((attention) => {
    const points = measurements
      .filter(({ cell }) => attentionName(cell) === attention)
      .map(({ cell, measured, record }): Point => {
        if (measured === null) return { x: cell.sequence, y: null, note: record.status };
        return { x: cell.sequence, y: value(measured) };
      });
    return points.some(({ y }) => y !== null) ? [{ name: `${attention}, ${what}`, points }] : [];
  });
}

function kindOf({ cell }: AttentionMeasurement): number {
  return attentionKinds.indexOf(cell.attention);
}

function formulaSeries({ measurements }: Group, scaled: (bytes: number) => number): Series[] {
  return attentionKinds.flatMap((attention) => {
    const points = measurements
      .filter(({ cell }) => cell.attention === attention && cell.execution === 'eager')
      .map(({ cell, need }): Point => ({ x: cell.sequence, y: scaled(need.beforeBackwardBytes) }));
    return points.length === 0 ? [] : [{ name: `${attention}, formula`, points }];
  });
}
