import { formatNumber, type Plot, type Table } from '@roofline/reports';
import { tablesOf, type ColumnOf } from '../../../report/declared-table.ts';
import { plotsOf, seriesOf } from '../../../report/series.ts';
import { column } from '../../../report/standard-columns.ts';
import { opParameters } from '../parameters.ts';
import { hostTime, measuredOps, opsIn, type MeasuredOp, type OverheadCells } from './measured.ts';

const us = { unit: 'µs' } as const;

const columns: readonly ColumnOf<MeasuredOp>[] = [
  column.number('hostUs', 'Host time', (op) => hostTime(op).median, {
    ...{ ...us, digits: 3, emphasis: 'strong' },
    description:
      'Of one call in the steady state, the median of the repeats. On a GPU the op is only queued meanwhile; on ' +
      'the CPU it also runs.',
  }),
  column.number('hostMeanUs', 'Mean', (op) => hostTime(op).mean, {
    ...{ ...us, uncertaintyKey: 'hostStdUs', qualifies: 'hostUs' },
    // One repeat has no spread.
    deviation: (op) => (hostTime(op).count > 1 ? hostTime(op).std : null),
  }),
  column.number('hostMinUs', 'Least', (op) => hostTime(op).min, { ...us, digits: 3 }),
  column.ms('coldMs', 'First op, cold', ({ result }) => result.firstOp?.coldMs, {
    shown: 'filled',
    description:
      'From the start of a fresh process to the result, the kernel cache empty: kernels get compiled.',
  }),
  column.ms('warmMs', 'First op, warm', ({ result }) => result.firstOp?.warmMs, {
    ...{ shown: 'filled', description: 'The same with the kernels in the cache.' },
  }),
];

/** All of them; only those that were measured are asked for values. */
function opRows(cells: OverheadCells): readonly MeasuredOp[] {
  return opsIn(cells) as readonly MeasuredOp[];
}

export function opTable(cells: OverheadCells): Table[] {
  const title = 'Host overhead of eager ops';
  return tablesOf({ id: 'overhead', title, parameters: opParameters, columns }, opRows(cells));
}

/** The op that costs the host least and the one that costs it most; and the first op of a process, where measured. */
export function opFindings(cells: OverheadCells): string[] {
  const measured = measuredOps(cells).toSorted((a, b) => hostTime(a).median - hostTime(b).median);
  const [least, most] = [measured[0], measured.at(-1)];
  if (!least || !most) return [];
  const number = (value: number) => formatNumber(value, 3);
  const cost = (op: MeasuredOp) => `**${number(hostTime(op).median)} µs** (\`${op.cell.op}\`)`;
  const first = measured.find(({ result }) => result.firstOp !== null);
  const { coldMs, warmMs } = first?.result.firstOp ?? {};
  return [
    `An eager op costs the host ${least === most ? cost(least) : `from ${cost(least)} to ${cost(most)}`}.`,
    ...(first
      ? [
          `The first \`${first.cell.op}\` of a process takes **${number(coldMs!)} ms** with no kernel compiled yet, and ` +
            `**${number(warmMs!)} ms** with all of them in the cache.`,
        ]
      : []),
  ];
}

export function opPlot(cells: OverheadCells): Plot[] {
  return plotsOf({
    ...{ id: 'host-time', title: 'Host time of one call', marks: 'bar' },
    caption: 'Median; error bars are one standard deviation.',
    x: { label: 'Op', scale: 'category' },
    y: { label: 'Host time', unit: 'µs', scale: 'linear' },
    series: seriesOf(
      {
        name: () => 'host',
        x: ({ cell }) => cell.op,
        y: (op) => {
          const { median, min, std } = hostTime(op);
          return { y: median, low: Math.max(min, median - std), high: median + std };
        },
      },
      opRows(cells),
    ),
  });
}
