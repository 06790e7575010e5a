import { alignmentOf, headingText, tableTexts } from '../table/cell-text.ts';
import type { Table } from '../model.ts';
import { printable } from './printable.ts';
import { shorten } from './shorten.ts';

/**
 * How a table is written in a markup language, as plain data: the page written by `renderHtml` carries these
 * forms, so that copying a sorted and filtered table there needs no second renderer.
 */
export interface TextForm {
  /** All before the first row, headings included. */
  begin: string;
  rowStart: string;
  cellSeparator: string;
  rowEnd: string;
  end: string;
  /** Characters of a cell; longer ones are shortened in the middle. */
  longestCell?: number;
}

/** What to write for a character, or a run of them. */
export type Escapes = Readonly<Record<string, string>>;

/** A function that replaces every key of `escapes`, the longest first, and what does not print. */
export function escaper(escapes: Escapes): (text: string) => string {
  const keys = Object.keys(escapes).sort((a, b) => b.length - a.length);
  const pattern = new RegExp(keys.map((key) => key.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|'), 'g');
  return (text) => printable(text).replace(pattern, (found) => escapes[found]!);
}

/** The headings of a table, escaped. */
export function headings(table: Table, escape: (text: string) => string): string[] {
  return table.columns.map((column) => escape(headingText(column)));
}

/** One letter or word a column, by its alignment. */
export function alignments(table: Table, names: { left: string; right: string; center: string }): string[] {
  return table.columns.map((column) => names[alignmentOf(column)]);
}

export function writeRow(form: TextForm, cells: readonly string[]): string {
  return form.rowStart + cells.join(form.cellSeparator) + form.rowEnd;
}

export function writeTable(form: TextForm, escape: (text: string) => string, table: Table): string {
  const rows = tableTexts(table).map((row) => {
    const texts = row.map((text) => shorten(text, form.longestCell));
    return writeRow(form, texts.map(escape));
  });
  return form.begin + rows.join('') + form.end;
}
