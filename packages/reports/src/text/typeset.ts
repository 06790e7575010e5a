import { headingText, isMeasured, tableTexts } from '../table/cell-text.ts';
import type { Column, Table } from '../model.ts';
import { joinSentences } from './join-sentences.ts';
import { lengthThatParts } from './shorten.ts';

/** Characters of a cell on paper, if that distinguishes the names; longer ones are shortened in the middle. */
const LONGEST_CELL = 44;
/** Rows that one page holds. */
const MOST_ROWS = 40;
/** Characters that a line of a page holds, roughly; columns are parted by two. */
const LINE = 70;

/** Characters of a cell that keep different names of a column apart. */
export function longestCell(table: Table): number {
  const texts = tableTexts(table);
  return Math.max(
    LONGEST_CELL,
    ...table.columns.map((_, index) =>
      lengthThatParts(
        texts.map((row) => row[index]!),
        LONGEST_CELL,
      ),
    ),
  );
}

/** Whether a table is likely to be wider than the text of a page. */
export function isWide(table: Table): boolean {
  const texts = tableTexts(table);
  const longest = longestCell(table);
  const widths = table.columns.map((column, index) => {
    const lengths = [headingText(column), ...texts.map((row) => row[index]!)].map(({ length }) => length);
    return Math.min(
      longest,
      lengths.reduce((most, length) => Math.max(most, length), 0),
    );
  });
  return widths.reduce((sum, width) => sum + width + 2, 0) > LINE;
}

/**
 * A table as one page takes it: the first rows where it has more, and, where it is wide, without the columns of words
 * that say the same in all rows. The caption says what was left out.
 */
export function typesetTable(table: Table): Table {
  const same = isWide(table) ? table.columns.filter((column) => isSame(table, column)) : [];
  const phrases = same.map(({ key, label }) => `${label}: ${String(table.rows[0]![key])}`);
  const cut = table.rows.length > MOST_ROWS ? `The first ${MOST_ROWS} of ${table.rows.length} rows.` : '';
  const caption = joinSentences([table.caption, phrases.length > 0 ? `${phrases.join('; ')}.` : '', cut]);
  return {
    ...table,
    ...(caption === '' ? {} : { caption }),
    columns: table.columns.filter((column) => !same.includes(column)),
    rows: table.rows.slice(0, MOST_ROWS),
  };
}

function isSame({ rows }: Table, column: Column): boolean {
  const value = rows[0]?.[column.key];
  if (isMeasured(column) || column.kind === 'status' || rows.length < 2) return false;
  return value !== null && value !== undefined && rows.every((row) => row[column.key] === value);
}
