import { formatNumber, formatPercent, type Table } from '@roofline/reports';
import { formatInterval, NO_INTERVAL, type RatioEstimate } from '../../../measuring/statistics.ts';
import { tablesOf, type ColumnOf } from '../../../report/declared-table.ts';
import { column } from '../../../report/standard-columns.ts';
import { valuesInWords } from '../../../report/values-in-words.ts';
import { stepNames, stepParameters } from '../../e2e/parameters.ts';
import type { InstrumentName } from '../result.ts';
import {
  costOf,
  instrumentsIn,
  type InstrumentCost,
  type InstrumentMeasurement,
  type OverheadCells,
} from './measured.ts';

/** Instruments in words. */
export const instrumentLabels: Readonly<Record<InstrumentName, string>> = {
  profile: 'profiling',
  profilerAtRest: 'a profiler at rest',
  memory: 'recording memory',
};

const columns: readonly ColumnOf<InstrumentRow>[] = [
  column.text('instrument', 'Instrument', ({ instrument }) => instrumentLabels[instrument], {
    everyRow: true,
  }),
  column.ms('offMs', 'Off', {
    description: 'Median device time of a train step without an instrument, before a profiler was attached.',
  }),
  column.ms('onMs', 'On', {
    description:
      'The same under the instrument: the step alone, from idle device to idle device. What starting and ' +
      'reading the instrument take is in Read-out.',
  }),
  column.ratio('ratio', 'On / off', ({ ratio }) => ratio.ratio, { digits: 4, emphasis: 'strong' }),
  column.text('ratioInterval', '95 % interval', ({ ratio }) => formatInterval(ratio), {
    ...{ align: 'right', qualifies: 'ratio', description: 'Of the ratio, by bootstrap over the rounds.' },
  }),
  column.percent('overhead', 'Overhead', ({ ratio }) => ratio.ratio - 1, {
    description: 'The ratio less one.',
  }),
  column.ratio('wallRatio', 'Wall, on / off', ({ onWallMs, offWallMs }) => onWallMs / offWallMs, {
    ...{ digits: 4, description: "Ratio of the medians by the host's clock." },
  }),
  column.number('events', 'Events', {
    description: 'Of one step: kernels, copies and fills; or allocations, frees and segments.',
  }),
  column.number('microsecondsPerEvent', 'Per event', microsecondsPerEvent, {
    ...{ unit: 'µs', digits: 2, description: 'Difference of the median wall times over the events.' },
  }),
  column.number('droppedRecords', 'Dropped', { description: 'Records that were lost, over all steps.' }),
  column.ms('readOutMs', 'Read-out', {
    description: 'What the instrument takes outside the step: to start, to flush, and to make its result.',
  }),
];

function microsecondsPerEvent({ events, onWallMs, offWallMs }: InstrumentCost): number | null {
  return events === 0 ? null : ((onWallMs - offWallMs) * 1000) / events;
}

// All cells are train steps.
const { mode: _, ...parameters } = stepParameters;

/** An instrument on one cell, and what it costs; of a cell without a result nothing is known of that. */
type InstrumentRow = InstrumentMeasurement & InstrumentCost;

/** One row an instrument and cell. */
export function instrumentTable(cells: OverheadCells): Table[] {
  const rows = instrumentsIn(cells).map((each) => ({ ...each, ...costOf(each) }) as InstrumentRow);
  return tablesOf(
    {
      ...{ id: 'instrument-overhead', title: 'Overhead of instruments', parameters, columns },
      facts: ({ ratio, offWallMs, onWallMs }) => ({
        ...{ ratioLow: ratio.low, ratioHigh: ratio.high, offWallMs, onWallMs },
      }),
    },
    rows,
  );
}

function namesOf(measurements: readonly InstrumentMeasurement[]) {
  return stepNames(measurements, ['size', 'context', 'batch', 'dtype']);
}

/** What each instrument adds to a step, and what was lost. */
export function instrumentFindings(cells: OverheadCells): string[] {
  const measurements = instrumentsIn(cells);
  const { name } = namesOf(measurements);
  const costs = measurements.flatMap((each) => {
    const cost = costOf(each);
    return cost ? [{ ...cost, instrument: each.instrument, name: name(each.cell) }] : [];
  });
  if (costs.length === 0) return [];
  const added = [...Map.groupBy(costs, ({ instrument }) => instrument)].map(([instrument, group]) => {
    const values = group.map((cost) => ({ name: cost.name, value: cost.ratio.ratio - 1 }));
    const interval = group.length === 1 ? ` (${percentInterval(group[0]!.ratio)})` : '';
    return `${instrumentLabels[instrument]} ${valuesInWords(values, formatPercent)}${interval}`;
  });
  const dropped = costs.reduce((sum, { droppedRecords }) => sum + droppedRecords, 0);
  const lost = dropped > 0 ? ` **${formatNumber(dropped)}** records were dropped.` : '';
  return [`Added to the time of a train step: ${added.join('; ')}.${lost}`];
}

function percentInterval({ low, high }: RatioEstimate): string {
  return Number.isNaN(low)
    ? NO_INTERVAL
    : `95 % interval ${formatPercent(low - 1)} to ${formatPercent(high - 1)}`;
}
