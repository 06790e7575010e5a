import { checkTable } from '../check/check-model.ts';
import { isAbsent, rawHeadingText } from '../table/cell-text.ts';
import { rawUnit } from '../table/number-text.ts';
import type { Cell, Row, Table } from '../model.ts';
import { printable } from './printable.ts';

/** A column of raw values: what CSV writes, and what the HTML page offers for download. */
export interface RawField {
  key: string;
  heading: string;
}

/**
 * The raw fields of a table: each column, its standard deviation after it, and, where a row has them, `status`
 * and `error`. Of headings that are the same the second one ends in 2.
 */
export function rawFields(table: Table): RawField[] {
  const fields: RawField[] = [];
  const add = (key: string, heading: string) => {
    if (fields.some((field) => field.key === key)) return;
    // Programs look columns up by their headings, where readers have the heading next to it.
    const isTaken = (text: string) => fields.some((field) => field.heading === text);
    let [unique, count] = [heading, 1];
    while (isTaken(unique)) unique = `${heading} ${++count}`;
    fields.push({ key, heading: unique });
  };
  for (const column of table.columns) {
    add(column.key, rawHeadingText(column));
    const unit = rawUnit(column);
    const isColumn = table.columns.some(({ key }) => key === column.uncertaintyKey);
    if (column.uncertaintyKey !== undefined && !isColumn) {
      add(column.uncertaintyKey, `${column.label} std${unit ? ` (${unit})` : ''}`);
    }
  }
  if (table.rows.some((row) => row.status !== undefined)) add('status', 'status');
  if (table.rows.some((row) => row.error !== undefined)) add('error', 'error');
  return fields;
}

/** A raw value; null where there is none, and `ok` for a row without a status. */
export function rawValue(row: Row, field: RawField): Cell {
  const value = row[field.key];
  if (field.key === 'status') return value ?? 'ok';
  return isAbsent(value, row) ? null : value;
}

/**
 * RFC 4180: CRLF, quotes where needed. Numbers are raw, at full precision, with their unit in the heading. What
 * was not measured is empty, and the row's `status` says why.
 */
export function renderCsv(table: Table): string {
  checkTable('renderCsv', table);
  const fields = rawFields(table);
  const lines = [
    fields.map((field) => csvField(field.heading)),
    ...table.rows.map((row) => fields.map((field) => csvField(rawValue(row, field)))),
  ];
  return lines.map((line) => `${line.join(',')}\r\n`).join('');
}

/** How a text begins that a spreadsheet would take for a formula. */
const FORMULA = /^[=+\-@\t\r]/;

/**
 * One field; NaN and Infinity are spelled so. A text that a spreadsheet would take for a formula begins with an
 * apostrophe, which it takes for the mark of a text.
 */
export function csvField(value: Cell): string {
  if (value === null || value === undefined) return '';
  const text =
    typeof value === 'string' ? printable(FORMULA.test(value) ? `'${value}` : value) : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
