import {
  formatNumber,
  formatPercent,
  formatRatio,
  type Column,
  type Plot,
  type Point,
  type Row,
  type Table,
} from '@roofline/reports';
import type { CellRecord } from '../../../records/record.ts';
import { cellNames, type CellNames } from '../../../report/cell-names.ts';
import { cellRow } from '../../../report/cell-row.ts';
import { configurationColumns, sharedCaption } from '../../../report/configuration-columns.ts';
import { capitalize, valuesInWords } from '../../../report/values-in-words.ts';
import {
  errorBarOf,
  formatInterval,
  NO_INTERVAL,
  ratioOfMedians,
  summarize,
  type RatioEstimate,
} from '../../../measuring/statistics.ts';
import { overheadCell, isInstrumentCell, type InstrumentCell } from '../parameters.ts';
import { instrumentNames, instrumentResult, type InstrumentName, type InstrumentResult } from '../result.ts';

const labels: Readonly<Record<InstrumentName, string>> = {
  profile: 'profiling',
  profilerAtRest: 'a profiler at rest',
  memory: 'recording memory',
};

/** One instrument on one cell; `cost` is null unless status is `ok`. */
export interface InstrumentMeasurement {
  readonly cell: InstrumentCell;
  readonly record: CellRecord;
  readonly instrument: InstrumentName;
  readonly cost: InstrumentCost | null;
}

/** Medians over the rounds. */
interface InstrumentCost {
  readonly offMs: number;
  readonly onMs: number;
  readonly ratio: RatioEstimate;
  readonly offWallMs: number;
  readonly onWallMs: number;
  readonly events: number;
  readonly droppedRecords: number;
  readonly readOutMs: number;
}

/** Those of the records that are of instruments, each instrument by itself. */
export function instrumentMeasurements(records: readonly CellRecord[]): InstrumentMeasurement[] {
  return records.flatMap((record) => {
    const cell = overheadCell.parse(record.parameters);
    if (!isInstrumentCell(cell)) return [];
    const result = record.status === 'ok' ? instrumentResult.parse(record.result) : null;
    return instrumentNames.map((instrument) => ({
      cell,
      record,
      instrument,
      cost: result && costOf(result, instrument),
    }));
  });
}

function costOf({ off, ...on }: InstrumentResult, instrument: InstrumentName): InstrumentCost {
  const { deviceMs, wallMs, readOutMs, events, droppedRecords } = on[instrument];
  const median = (samples: readonly number[]) => summarize(samples).median;
  return {
    offMs: median(off.deviceMs),
    onMs: median(deviceMs),
    ratio: ratioOfMedians(deviceMs, off.deviceMs),
    offWallMs: median(off.wallMs),
    onWallMs: median(wallMs),
    events: median(events),
    droppedRecords,
    readOutMs: median(readOutMs),
  };
}

const columns: Column[] = [
  {
    key: 'offMs',
    label: 'Off',
    unit: 'ms',
    kind: 'duration',
    description: 'Median device time of a train step without an instrument, before a profiler was attached.',
  },
  {
    key: 'onMs',
    label: 'On',
    unit: 'ms',
    kind: 'duration',
    description:
      'The same under the instrument: the step alone, from idle device to idle device. What starting and ' +
      'reading the instrument take is in Read-out.',
  },
  { key: 'ratio', label: 'On / off', kind: 'ratio', digits: 4, emphasis: 'strong' },
  {
    key: 'ratioInterval',
    label: '95 % interval',
    kind: 'text',
    align: 'right',
    qualifies: 'ratio',
    description: 'Of the ratio, by bootstrap over the rounds.',
  },
  { key: 'overhead', label: 'Overhead', kind: 'percent', description: 'The ratio less one.' },
  {
    key: 'wallRatio',
    label: 'Wall, on / off',
    kind: 'ratio',
    digits: 4,
    description: "Ratio of the medians by the host's clock.",
  },
  {
    key: 'events',
    label: 'Events',
    kind: 'number',
    description: 'Of one step: kernels, copies and fills; or allocations, frees and segments.',
  },
  {
    key: 'microsecondsPerEvent',
    label: 'Per event',
    unit: 'µs',
    kind: 'number',
    digits: 2,
    description: 'Difference of the median wall times over the events.',
  },
  {
    key: 'droppedRecords',
    label: 'Dropped',
    kind: 'number',
    description: 'Records that were lost, over all steps.',
  },
  {
    key: 'readOutMs',
    label: 'Read-out',
    unit: 'ms',
    kind: 'duration',
    description: 'What the instrument takes outside the step: to start, to flush, and to make its result.',
  },
];

/** One row an instrument and cell. */
export function instrumentTable(measurements: readonly InstrumentMeasurement[]): Table {
  const rows = measurements.map(instrumentRow);
  return {
    kind: 'table',
    id: 'instrument-overhead',
    title: 'Overhead of instruments',
    caption: sharedCaption(rows),
    columns: [
      { key: 'instrument', label: 'Instrument', kind: 'text' },
      ...configurationColumns(rows).filter(({ key }) => key !== 'mode'),
      ...columns,
    ],
    rows,
  };
}

function instrumentRow({ cell, record, instrument, cost }: InstrumentMeasurement): Row {
  const row: Row = { instrument: labels[instrument], ...cellRow(cell, record) };
  if (cost === null) return row;
  const { ratio, offWallMs, onWallMs, events, ...rest } = cost;
  return {
    ...row,
    ...rest,
    ratio: ratio.ratio,
    ratioLow: ratio.low,
    ratioHigh: ratio.high,
    ratioInterval: formatInterval(ratio),
    overhead: ratio.ratio - 1,
    offWallMs,
    onWallMs,
    wallRatio: onWallMs / offWallMs,
    events,
    microsecondsPerEvent: events === 0 ? null : ((onWallMs - offWallMs) * 1000) / events,
  };
}

export function instrumentPlot(measurements: readonly InstrumentMeasurement[]): Plot {
  const { name, shared } = namesOf(measurements);
  const point = ({ cell, record, cost }: InstrumentMeasurement): Point => {
    const x = name(cell);
    if (cost === null) return { x, y: null, note: record.status };
    return { x, y: cost.ratio.ratio, ...errorBarOf(cost.ratio) };
  };
  return {
    kind: 'plot',
    id: 'instrument-ratios',
    title: 'Step under an instrument over step without',
    caption: `Ratio of the medians, with its 95 % interval${shared && `; ${shared}`}.`,
    x: { label: 'Model', scale: 'category' },
    y: { label: 'On / off', scale: 'linear' },
    marks: 'bar',
    series: instrumentNames.map((instrument) => ({
      name: labels[instrument],
      points: measurements.filter((each) => each.instrument === instrument).map(point),
    })),
    references: [{ label: 'off', y: 1 }],
  };
}

function namesOf(measurements: readonly InstrumentMeasurement[]): CellNames {
  return cellNames(
    measurements.map(({ cell }) => cell),
    ['size', 'context', 'batch', 'dtype'],
  );
}

/** What each instrument adds to a step, and what it lost. */
export function instrumentSentences(measurements: readonly InstrumentMeasurement[]): string[] {
  const { name } = namesOf(measurements);
  return instrumentNames.flatMap((instrument) => {
    const measured = measurements.flatMap(({ cell, cost, instrument: of }) =>
      of === instrument && cost ? [{ name: name(cell), cost }] : [],
    );
    if (measured.length === 0) return [];
    const overheads = measured.map(({ name, cost }) => ({ name, value: cost.ratio.ratio - 1 }));
    const [only] = measured.length === 1 ? measured : [];
    const interval = only ? ` (${percentInterval(only.cost.ratio)})` : '';
    const dropped = measured.reduce((sum, { cost }) => sum + cost.droppedRecords, 0);
    return [
      `${capitalize(labels[instrument])} adds ${valuesInWords(overheads, formatPercent)} to the time of a train ` +
        `step${interval}${dropped > 0 ? `; **${formatNumber(dropped)}** records were dropped` : ''}.`,
    ];
  });
}

function percentInterval({ low, high }: RatioEstimate): string {
  return Number.isNaN(low)
    ? NO_INTERVAL
    : `95 % interval ${formatPercent(low - 1)} to ${formatPercent(high - 1)}`;
}

/** `1.042× (1.031–1.055), 2.1 µs an event`. */
export function instrumentFinding({ ratio, ratioInterval, microsecondsPerEvent }: Row): string {
  const perEvent =
    typeof microsecondsPerEvent === 'number' ? `, ${formatNumber(microsecondsPerEvent, 2)} µs an event` : '';
  return `${formatRatio(Number(ratio), 4)} (${ratioInterval})${perEvent}`;
}
