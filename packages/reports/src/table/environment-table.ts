import type { Report, Table } from '../model.ts';

/** The environment of a report as a table of two columns. */
export function environmentTable(report: Report): Table {
  return {
    kind: 'table',
    id: 'environment-table',
    title: 'Environment',
    columns: [
      { key: 'label', label: 'Setting', kind: 'text' },
      { key: 'value', label: 'Value', kind: 'text' },
    ],
    rows: report.environment,
  };
}
