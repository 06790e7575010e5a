import { isMeasured, isRoofShare, tableTexts, statusMarker } from '../table/cell-text.ts';
import { csvField, rawFields, rawValue } from '../text/csv.ts';
import { LATEX_ESCAPES, latexForm } from '../text/latex.ts';
import { MARKDOWN_ESCAPES, markdownForm } from '../text/markdown.ts';
import { printable } from '../text/printable.ts';
import { shortSymbol } from '../text/short-symbol.ts';
import type { Cell, Column, Table } from '../model.ts';
import type { Escapes, TextForm } from '../text/text-form.ts';

/** What `templates/tables.js` knows of a table: all it needs to sort, filter, page, copy and save it. */
export interface TableData {
  rowCount: number;
  /** Raw values, as CSV and JSON hold them. */
  fields: { key: string; values: Cell[] }[];
  csvHeader: string;
  columns: ColumnData[];
  /** The rows that did not end well: sorted last, whatever the order. */
  failed: number[];
  forms: Record<'Markdown' | 'LaTeX', TextForm>;
}

export interface ColumnData {
  /** Index of the field that holds the column's values. */
  field: number;
  /** The cells as shown; null where they are the values themselves. */
  texts: string[] | null;
  /** What is shown of long words, by the whole; see `shortSymbol`. */
  shown: Record<string, string>;
  measured: boolean;
  className: string;
}

/** What to escape in the cells of each form, the same for all tables. */
export const FORM_ESCAPES: Record<keyof TableData['forms'], Escapes> = {
  Markdown: MARKDOWN_ESCAPES,
  LaTeX: LATEX_ESCAPES,
};

export function tableData(table: Table): TableData {
  const fields = rawFields(table);
  const rows = tableTexts(table).map((texts) => texts.map(printable));
  return {
    rowCount: rows.length,
    fields: fields.map((field) => ({
      key: field.key,
      values: table.rows.map((row) => printableCell(rawValue(row, field))),
    })),
    csvHeader: fields.map(({ heading }) => csvField(heading)).join(','),
    columns: table.columns.map((column, index) => ({
      field: fields.findIndex(({ key }) => key === column.key),
      texts: rows.every((texts, row) => texts[index] === table.rows[row]![column.key])
        ? null
        : rows.map((texts) => texts[index]!),
      shown: isMeasured(column) ? {} : shortened(rows.map((texts) => texts[index]!)),
      measured: isMeasured(column),
      className: cellClass(table, column),
    })),
    failed: table.rows.flatMap((row, index) => (statusMarker(row) === undefined ? [] : [index])),
    forms: { Markdown: markdownForm(table), LaTeX: latexForm(table) },
  };
}

/** What is copied and saved from the page goes through no renderer. */
function printableCell(value: Cell): Cell {
  return typeof value === 'string' ? printable(value) : value;
}

/** Those of which not all is shown. */
function shortened(texts: readonly string[]): Record<string, string> {
  const names = [...new Set(texts)];
  return Object.fromEntries(
    names.map((text) => [text, shortSymbol(text)]).filter(([text, shown]) => text !== shown),
  );
}

/** Cells with more characters may wrap. */
const LONGEST_LINE = 40;

/** The classes of a column's cells. */
export function cellClass(table: Table, column: Column): string {
  const names = [
    column.kind,
    isRoofShare(column) ? 'share' : '',
    column.emphasis === 'strong' ? 'strong' : '',
  ];
  if (isMeasured(column)) names.push('measured');
  else if (table.rows.some((row) => shortSymbol(String(row[column.key] ?? '')).length > LONGEST_LINE))
    names.push('prose');
  if (column.align) names.push(`align-${column.align}`);
  return names.filter(Boolean).join(' ');
}
