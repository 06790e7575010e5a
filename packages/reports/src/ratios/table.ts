import { checkRatios } from '../check/check-model.ts';
import type { Cell, RatioPlot, Row, Table } from '../model.ts';
import { formatRatio } from '../table/format.ts';

/**
 * A comparison's numbers as a table, one row a case.
 *
 * @throws ReportError for what is no comparison.
 */
export function ratioTable(plot: RatioPlot): Table {
  checkRatios('ratioTable', plot);
  const { id, title, caption, ours, theirs, value, heads, rows } = plot;
  const hasIntervals = rows.some(({ low, high }) => low !== undefined && high !== undefined);
  const measured = { kind: value, unitGroup: 'values' } as const;
  return {
    kind: 'table',
    id: `${id}-data`,
    title,
    caption,
    columns: [
      ...heads.map((label, index) => ({ key: `name${index}`, label, kind: 'text' }) as const),
      { key: 'ours', label: ours, ...measured },
      { key: 'theirs', label: theirs, ...measured },
      { key: 'ratio', label: `${ours} / ${theirs}`, kind: 'ratio', emphasis: 'strong' },
      ...(hasIntervals
        ? [{ key: 'interval', label: 'Interval', kind: 'text', align: 'right', qualifies: 'ratio' } as const]
        : []),
    ],
    rows: rows.map(({ names, low, high, note, ...values }): Row => {
      const ratio = values.ours === null || values.theirs === null ? null : values.ours / values.theirs;
      return {
        ...Object.fromEntries(names.map((name, index): [string, Cell] => [`name${index}`, name])),
        ...values,
        ratio: ratio ?? note ?? null,
        interval:
          low === undefined || high === undefined ? null : `${formatRatio(low)} to ${formatRatio(high)}`,
      };
    }),
  };
}
