import type { Row, Table } from '@roofline/reports';
import { tableOf, type RowItem } from './declared-table.ts';
import { column } from './standard-columns.ts';

/** What a study found in one place, in a few words. */
export interface Finding extends RowItem {
  readonly study: string;
  readonly what: string;
  readonly dtype?: string;
  /** Null where nothing was measured. */
  readonly finding: string | null;
  /** What the study's own table holds of it. */
  readonly row: Row;
}

/** The table of a benchmark of several studies, whose own tables have other columns: one finding a row. */
export function findingsTable(id: string, title: string, findings: readonly Finding[]): Table {
  return tableOf<Finding>(
    {
      ...{ id, title },
      facts: ({ row }) => row,
      columns: [
        column.text('study', 'Study', { everyRow: true }),
        column.text('what', 'What', { everyRow: true }),
        column.text('dtype', 'Dtype', {
          everyRow: true,
          shown: (measured) => measured.some(({ dtype }) => dtype !== undefined),
        }),
        column.text('finding', 'Finding', { align: 'right', emphasis: 'strong' }),
      ],
    },
    findings,
  );
}
