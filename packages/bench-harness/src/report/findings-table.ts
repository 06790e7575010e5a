import type { Column, Row, Table } from '@roofline/reports';
import type { JsonObject } from '../records/json.ts';
import { outcomeOf } from './declared-table.ts';
import type { Measurement } from './measurement.ts';
import { valueText } from './values-in-words.ts';

/** One study of a benchmark that has several. */
export interface Study {
  readonly name: string;
  readonly cells: readonly Measurement<JsonObject, unknown>[];
  /** Its own table; none where nothing was measured. */
  readonly table: readonly Table[];
  /** The keys of the columns that say what was found; those of text before the first of them say of what. */
  readonly finding: readonly string[];
}

/** The table of a benchmark of several studies, whose own tables have other columns: one finding a row. */
export function findingsTable(id: string, title: string, studies: readonly Study[]): Table {
  return {
    ...{ kind: 'table', id, title },
    columns: [
      { key: 'study', label: 'Study', kind: 'text' },
      { key: 'what', label: 'What', kind: 'text' },
      { key: 'finding', label: 'Finding', kind: 'text', align: 'right', emphasis: 'strong' },
    ],
    rows: studies.flatMap(rowsOf),
  };
}

function rowsOf({ name, cells, table, finding }: Study): Row[] {
  const measured = table.flatMap(({ columns, rows }) => {
    const first = columns.findIndex(({ key }) => finding.includes(key));
    const named = columns.slice(0, first).filter(({ kind }) => kind === 'text');
    const found = columns.filter(({ key }) => finding.includes(key));
    return rows
      .filter(({ status }) => status === 'ok')
      .map((row) => ({
        ...row,
        study: name,
        what: shown(named, row)
          .map(({ head, value, text }) =>
            typeof value === 'number' ? `${head.toLowerCase()} ${text}` : text,
          )
          .join(', '),
        finding: shown(found, row)
          .map(({ head, text }) => `${head}: ${text}`)
          .join('; '),
      }));
  });
  const unmeasured = cells.filter(({ result }) => result === null);
  return [
    ...measured,
    ...unmeasured.map((each) => ({ study: name, what: each.name, ...outcomeOf(each.record) })),
  ];
}

/** The values that a row has in these columns, as tables write them. */
function shown(columns: readonly Column[], row: Row) {
  return columns.flatMap((column) => {
    const value = row[column.key];
    if (value === null || value === undefined || value === '') return [];
    return [{ head: column.label, value, text: valueText(value, column) }];
  });
}
