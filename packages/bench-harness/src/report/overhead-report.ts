import { formatNumber, type Column, type Plot, type Report, type Row, type Table } from '@roofline/reports';
import { overheadCell, overheadResult } from '../overhead/parameters.ts';
import type { CellRecord } from '../records/record.ts';
import { summarize } from '../statistics.ts';
import { environmentFacts } from './environment-facts.ts';

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
  { key: 'hostMeanUs', label: 'Mean', unit: 'µs', kind: 'number', uncertaintyKey: 'hostStdUs' },
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

function overheadRow(record: CellRecord): Row {
  const { op } = overheadCell.parse(record.parameters);
  if (record.status !== 'ok') return { op, status: record.status, error: record.error?.message ?? '' };
  const { hostUs, firstOp } = overheadResult.parse(record.result);
  const { mean, median, std, min, count } = summarize(hostUs);
  return {
    op,
    status: 'ok',
    hostUs: median,
    hostMeanUs: mean,
    // One repeat has no spread.
    hostStdUs: count > 1 ? std : null,
    hostMinUs: min,
    ...firstOp,
  };
}

/** One row an op; the columns of first ops only where they were measured. */
export function overheadTable(records: readonly CellRecord[]): Table {
  const rows = records.map(overheadRow);
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
  const latest = records.reduce((a, b) => (a.startedAt > b.startedAt ? a : b));
  const table = overheadTable(records);
  return {
    title: 'Host overhead of eager ops',
    subtitle: latest.environment.device.name,
    createdAt: latest.startedAt,
    summary: table.rows.filter(({ status }) => status === 'ok').map(overheadSentence),
    environment: environmentFacts(latest),
    sections: [{ id: 'ops', title: 'Ops', blocks: [table, overheadPlot(table.rows)] }],
  };
}

function overheadSentence({ op, hostUs, coldMs, warmMs }: Row): string {
  const number = (value: unknown) => formatNumber(Number(value), 3);
  const first =
    typeof coldMs === 'number'
      ? `; the first one in a process takes ${number(coldMs)} ms, with compiled kernels ${number(warmMs)} ms`
      : '';
  return `An eager \`${String(op)}\` costs the host **${number(hostUs)} µs**${first}.`;
}

function overheadPlot(rows: readonly Row[]): Plot {
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
