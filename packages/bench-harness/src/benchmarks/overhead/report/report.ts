import {
  formatNumber,
  type Column,
  type Plot,
  type Report,
  type Row,
  type Section,
  type Table,
} from '@roofline/reports';
import {
  instrumentFinding,
  instrumentMeasurements,
  instrumentPlot,
  instrumentSentences,
  instrumentTable,
  type InstrumentMeasurement,
} from './instrument-tables.ts';
import { isInstrumentCell, overheadCell } from '../parameters.ts';
import { opResult } from '../result.ts';
import type { CellRecord } from '../../../records/record.ts';
import { summarize } from '../../../measuring/statistics.ts';
import { outcomeOf } from '../../../report/cell-row.ts';
import { reportHead } from '../../../report/report-head.ts';

const columns: Column[] = [
  { key: 'op', label: 'Op', kind: 'text' },
  {
    key: 'hostUs',
    label: 'Host time',
    unit: 'µs',
    kind: 'number',
    digits: 3,
    emphasis: 'strong',
    description:
      'Of one call in the steady state, the median of the repeats. On a GPU the op is only queued meanwhile; on ' +
      'the CPU it also runs.',
  },
  {
    ...{ key: 'hostMeanUs', label: 'Mean', unit: 'µs', kind: 'number' },
    ...{ uncertaintyKey: 'hostStdUs', qualifies: 'hostUs' },
  },
  { key: 'hostMinUs', label: 'Least', unit: 'µs', kind: 'number', digits: 3 },
];

const firstOpColumns: Column[] = [
  {
    key: 'coldMs',
    label: 'First op, cold',
    unit: 'ms',
    kind: 'duration',
    description:
      'From the start of a fresh process to the result, the kernel cache empty: kernels get compiled.',
  },
  {
    key: 'warmMs',
    label: 'First op, warm',
    unit: 'ms',
    kind: 'duration',
    description: 'The same with the kernels in the cache.',
  },
];

function opRow(record: CellRecord): Row[] {
  const cell = overheadCell.parse(record.parameters);
  return isInstrumentCell(cell) ? [] : [{ op: cell.op, ...hostTimes(record) }];
}

function hostTimes(record: CellRecord): Row {
  if (record.status !== 'ok') return outcomeOf(record);
  const { hostUs, firstOp } = opResult.parse(record.result);
  const { mean, median, std, min, count } = summarize(hostUs);
  return {
    status: 'ok',
    hostUs: median,
    hostMeanUs: mean,
    // One repeat has no spread.
    hostStdUs: count > 1 ? std : null,
    hostMinUs: min,
    ...firstOp,
  };
}

/** Everything that was found: in full where it is of one kind, else one finding a row. */
export function overheadTable(records: readonly CellRecord[]): Table {
  const [ops, instruments] = [opTable(records), instrumentTable(instrumentMeasurements(records))];
  if (instruments.rows.length === 0) return ops;
  if (ops.rows.length === 0) return instruments;
  const finding = (row: Row, is: (row: Row) => string) => (row.status === 'ok' ? is(row) : null);
  return {
    kind: 'table',
    id: 'overhead-findings',
    title: 'Overhead of eager ops and of instruments',
    columns: [
      { key: 'study', label: 'Study', kind: 'text' },
      { key: 'what', label: 'What', kind: 'text' },
      { key: 'finding', label: 'Finding', kind: 'text', align: 'right', emphasis: 'strong' },
    ],
    rows: [
      ...ops.rows.map((row) => ({ study: 'ops', what: row['op'], ...row, finding: finding(row, opFinding) })),
      ...instruments.rows.map((row) => ({
        study: 'instruments',
        what: `${row['instrument']}, ${row['size']}, context ${row['context']}, batch ${row['batch']}, ${row['dtype']}`,
        ...row,
        finding: finding(row, instrumentFinding),
      })),
    ],
  };
}

function opFinding({ hostUs }: Row): string {
  return `${formatNumber(Number(hostUs), 3)} µs a call`;
}

/** One row an op; the columns of first ops only where they were measured. */
function opTable(records: readonly CellRecord[]): Table {
  const rows = records.flatMap(opRow);
  const hasFirstOps = rows.some((row) => typeof row['coldMs'] === 'number');
  return {
    kind: 'table',
    id: 'overhead',
    title: 'Host overhead of eager ops',
    columns: hasFirstOps ? [...columns, ...firstOpColumns] : columns,
    rows,
  };
}

export function overheadReport(records: readonly CellRecord[]): Report {
  const ops = opTable(records);
  const instruments = instrumentMeasurements(records);
  return {
    ...reportHead('Overhead', records),
    summary: [...opSentences(ops.rows), ...instrumentSentences(instruments)],
    sections: [
      ...(ops.rows.length > 0 ? [{ id: 'ops', title: 'Ops', blocks: [ops, opPlot(ops.rows)] }] : []),
      ...(instruments.length > 0 ? [instrumentSection(instruments)] : []),
    ],
  };
}

function instrumentSection(measurements: readonly InstrumentMeasurement[]): Section {
  return {
    id: 'instruments',
    title: 'Instruments',
    text: [
      'Train steps without an instrument and recorded by `recordMemory()`, in turn; then profiled by `profile()` and, in ' +
        'turn with those, with a profiler at rest: a process that has profiled keeps its profiler attached. A plain step ' +
        'goes before each. A step is timed from an idle device to an idle device; what an instrument takes before and ' +
        'after it is in the column Read-out.',
    ],
    blocks: [instrumentTable(measurements), instrumentPlot(measurements)],
  };
}

/** The op that costs the host least and the one that costs it most; and the first op of a process, where measured. */
function opSentences(rows: readonly Row[]): string[] {
  const measured = rows
    .filter(({ status }) => status === 'ok')
    .toSorted((a, b) => Number(a['hostUs']) - Number(b['hostUs']));
  const [least, most] = [measured[0], measured.at(-1)];
  if (!least || !most) return [];
  const number = (value: unknown) => formatNumber(Number(value), 3);
  const cost = ({ op, hostUs }: Row) => `**${number(hostUs)} µs** (\`${String(op)}\`)`;
  const first = measured.find(({ coldMs }) => typeof coldMs === 'number');
  return [
    `An eager op costs the host ${least === most ? cost(least) : `from ${cost(least)} to ${cost(most)}`}.`,
    ...(first
      ? [
          `The first \`${String(first['op'])}\` of a process takes **${number(first['coldMs'])} ms** with no kernel ` +
            `compiled yet, and **${number(first['warmMs'])} ms** with all of them in the cache.`,
        ]
      : []),
  ];
}

function opPlot(rows: readonly Row[]): Plot {
  return {
    kind: 'plot',
    id: 'host-time',
    title: 'Host time of one call',
    caption: 'Median; error bars are one standard deviation.',
    x: { label: 'Op', scale: 'category' },
    y: { label: 'Host time', unit: 'µs', scale: 'linear' },
    marks: 'bar',
    series: [
      {
        name: 'host',
        points: rows.map(({ op, status, hostUs, hostStdUs, hostMinUs }) => {
          if (typeof hostUs !== 'number') return { x: String(op), y: null, note: String(status) };
          const spread = Number(hostStdUs ?? 0);
          return {
            x: String(op),
            y: hostUs,
            low: Math.max(Number(hostMinUs), hostUs - spread),
            high: hostUs + spread,
          };
        }),
      },
    ],
  };
}
