import { checkPlot } from '../check/check-model.ts';
import type { Column, Plot, Row, Table } from '../model.ts';

/**
 * A plot's numbers as a table: one row an x, or as many as a series has points there, and one column a series. The ends
 * of error bars are columns of their own.
 */
export function plotTable(plot: Plot): Table {
  checkPlot('plotTable', plot);
  const isText = plot.series.some(({ points }) => points.some(({ x }) => typeof x === 'string'));
  const columns: Column[] = [
    { key: 'x', label: plot.x.label, unit: plot.x.unit, kind: isText ? 'text' : 'number' },
  ];
  const rowsAt = new Map<number | string, Row[]>();
  plot.series.forEach((series, index) => {
    const key = `series${index}`;
    const hasBars = series.points.some(({ low, high }) => low !== undefined && high !== undefined);
    const counts = new Map<number | string, number>();
    const measured = { unit: plot.y.unit, kind: 'number', digits: 3 } as const;
    columns.push({ key, label: series.name, ...measured });
    if (hasBars) {
      columns.push({ key: `${key}Low`, label: `${series.name}, low`, ...measured });
      columns.push({ key: `${key}High`, label: `${series.name}, high`, ...measured });
    }
    for (const { x, y, low, high, note } of series.points) {
      const rows = rowsAt.get(x) ?? [];
      rowsAt.set(x, rows);
      const count = counts.get(x) ?? 0;
      counts.set(x, count + 1);
      const row = (rows[count] ??= { x });
      row[key] = y ?? note ?? null;
      if (low !== undefined && high !== undefined) {
        row[`${key}Low`] = low;
        row[`${key}High`] = high;
      }
    }
  });
  const { id, title, caption } = plot;
  return { kind: 'table', id: `${id}-data`, title, caption, columns, rows: [...rowsAt.values()].flat() };
}
