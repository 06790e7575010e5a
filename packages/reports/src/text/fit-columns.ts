import { headingText, isMeasured } from '../table/cell-text.ts';
import type { Column, Row, Table } from '../model.ts';
import { displayWidth, longestWordWidth } from './display-width.ts';
import { markedTexts } from './spread-marks.ts';
import { bound, ofTerminal } from './terminal-text.ts';

export const GAP = 2;
/** Longer words than this may be broken. */
const LONGEST_WORD = 24;
/** What is left of a name that is shortened. */
const SHORTEST_NAME = 24;

export interface FittedColumn {
  readonly column: Column;
  width: number;
}

/** The part of a table that a terminal has room for. */
export interface FittedTable {
  /** The table with the columns that are shown. */
  readonly table: Table;
  readonly columns: readonly FittedColumn[];
  /** Left out because all rows say the same. */
  readonly same: readonly Column[];
  /** Left out for want of room. */
  readonly dropped: readonly Column[];
  /** Columns of a terminal that shows all. */
  readonly fullWidth: number;
}

interface MeasuredColumn {
  readonly column: Column;
  /** With all its texts in one line. */
  readonly natural: number;
  /** With its heading broken at words. */
  readonly headingWrapped: number;
  /** With its texts broken or shortened, too. Numbers are neither. */
  readonly least: number;
}

/**
 * Fits a table into `width`: headings break at words, then texts break or are shortened; and where that is not enough
 * columns are left out, the least useful first.
 */
export function fitTable(table: Table, width: number): FittedTable {
  const all = measureColumns(table);
  const fullWidth = totalWidth(all.map(({ least }) => least));
  const kept = new Set(all);
  const isTooWide = () => totalWidth([...kept].map(({ least }) => least)) > width;
  const withQualifying = (each: MeasuredColumn) => [
    each,
    ...all.filter(({ column }) => column.qualifies === each.column.key),
  ];
  const leaveOut = (candidates: readonly MeasuredColumn[]) => {
    for (const each of candidates) if (isTooWide()) withQualifying(each).forEach((one) => kept.delete(one));
  };
  const takeBack = (candidates: readonly MeasuredColumn[]) => {
    for (const each of candidates.filter((candidate) => !kept.has(candidate))) {
      withQualifying(each).forEach((one) => kept.add(one));
      if (isTooWide()) withQualifying(each).forEach((one) => kept.delete(one));
    }
  };
  leaveOut(all.filter(({ column }) => saysTheSame(table, column)));
  const same = all.filter((each) => !kept.has(each));
  const order = dropOrder([...kept], table.rows);
  leaveOut(order);
  // A wide column that had to go may have made room for what went before it.
  takeBack(order.toReversed());
  const columnsOf = (columns: readonly MeasuredColumn[]) => columns.map(({ column }) => column);
  const shown = { ...table, columns: columnsOf(all.filter((each) => kept.has(each))) };
  return {
    table: shown,
    columns: narrow(measureColumns(shown), width),
    same: columnsOf(same),
    dropped: columnsOf(all.filter((each) => !kept.has(each) && !same.includes(each))),
    fullWidth,
  };
}

function measureColumns(table: Table): MeasuredColumn[] {
  const texts = markedTexts(table).map((row) => row.map((text) => bound(ofTerminal(text))));
  const widest = (index: number, widthOf: (text: string) => number) =>
    texts.reduce((width, row) => Math.max(width, widthOf(row[index]!)), 1);
  return table.columns.map((column, index) => {
    const heading = bound(ofTerminal(headingText(column)));
    const content = widest(index, displayWidth);
    const headingWrapped = Math.max(content, longestWordWidth(heading));
    return {
      column,
      natural: Math.max(content, displayWidth(heading)),
      headingWrapped,
      least: Math.max(
        leastWidth(column, content, widest(index, longestWordWidth)),
        longestWordWidth(heading),
      ),
    };
  });
}

function leastWidth({ kind, overflow }: Column, content: number, word: number): number {
  if (kind !== 'text') return content;
  return overflow === 'shorten' ? Math.min(SHORTEST_NAME, content) : Math.min(LONGEST_WORD, word);
}

/** The widths of columns, narrowed towards a total of `width`: the widest gives first. */
function narrow(measured: readonly MeasuredColumn[], width: number): FittedColumn[] {
  const columns = measured.map((each) => ({ ...each, width: each.natural }));
  for (const narrowest of ['headingWrapped', 'least'] as const) {
    let excess = totalWidth(columns.map((column) => column.width)) - width;
    for (const column of columns.toSorted((a, b) => b.width - a.width)) {
      const cut = Math.min(Math.max(0, excess), column.width - column[narrowest]);
      column.width -= cut;
      excess -= cut;
    }
  }
  return columns;
}

/**
 * Details first, then what is not stressed, then the rest but for one measured column, last the names but for one. Among the
 * others, numbers that have an interval go last: what qualifies another column goes with that, and is missed most.
 */
function dropOrder(columns: readonly MeasuredColumn[], rows: readonly Row[]): MeasuredColumn[] {
  const firstMeasured = columns.findIndex(({ column }) => isMeasured(column));
  const nameCount = Math.max(1, firstMeasured);
  const isName = (each: MeasuredColumn) => columns.indexOf(each) < nameCount;
  const rank = (each: MeasuredColumn): number => {
    if (each.column.detail || saysNothing(each.column, rows)) return 0;
    if (isName(each)) return 3;
    if (hasInterval(each)) return 2.5;
    return each.column.emphasis === undefined ? 1 : 2;
  };
  const hasInterval = ({ column: { key, uncertaintyKey } }: MeasuredColumn) =>
    uncertaintyKey !== undefined || columns.some(({ column }) => column.qualifies === key);
  const stands = ({ column: { qualifies } }: MeasuredColumn) =>
    !columns.some(({ column }) => column.key === qualifies);
  const strongest =
    columns.find(
      (each) => stands(each) && each.column.emphasis !== undefined && [2, 2.5].includes(rank(each)),
    ) ?? columns.slice(nameCount).find(stands);
  return columns
    .filter((each, index) => index > 0 && each !== strongest && stands(each))
    .toReversed()
    .sort((a, b) => rank(a) - rank(b));
}

/** Whether a column says of every row that it was measured. */
function saysNothing({ kind, key }: Column, rows: readonly Row[]): boolean {
  return kind === 'status' && rows.every((row) => row[key] === 'ok');
}

/** Whether a column of words distinguishes no rows. */
function saysTheSame({ rows }: Table, column: Column): boolean {
  const value = rows[0]?.[column.key];
  if (isMeasured(column) || column.kind === 'status' || rows.length < 2) return false;
  return value !== null && value !== undefined && rows.every((row) => row[column.key] === value);
}

function totalWidth(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width, 0) + GAP * (widths.length - 1);
}
