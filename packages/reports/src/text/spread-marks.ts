import { deviationOf, isAbsent, tableTexts } from '../table/cell-text.ts';
import type { Column, Row, Table } from '../model.ts';

/** Above this share of its value, a standard deviation is called wide. */
export const WIDE_SPREAD = 0.05;

/** In front: digits stay below each other. */
const MARK = '! ';

/** What the mark in a cell means. */
export const SPREAD_NOTE = `! The spread is wide: the standard deviation is over ${100 * WIDE_SPREAD} % of the value.`;

/** The cells of all rows as text, those whose spread is wide with a mark. */
export function markedTexts(table: Table): string[][] {
  return tableTexts(table).map((texts, i) =>
    texts.map((text, index) => {
      const isMarked = hasWideSpread(table.columns[index]!, table.rows[i]!);
      return isMarked ? MARK + text : text;
    }),
  );
}

/** Whether a cell of a table is marked. */
export function hasMarks({ columns, rows }: Table): boolean {
  return columns.some((column) => rows.some((row) => hasWideSpread(column, row)));
}

function hasWideSpread(column: Column, row: Row): boolean {
  const value = row[column.key];
  const deviation = deviationOf(column, row);
  if (typeof value !== 'number' || deviation === undefined || isAbsent(value, row)) return false;
  return value !== 0 && deviation > WIDE_SPREAD * Math.abs(value);
}
