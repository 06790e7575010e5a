import { headingText, isMeasured } from '../table/cell-text.ts';
import type { Column, Table } from '../model.ts';
import { displayWidth, longestWordWidth } from './display-width.ts';
import { markedTexts } from './spread-marks.ts';
import { ofTerminal } from './terminal-text.ts';

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
  const leaveOut = (candidates: readonly MeasuredColumn[]): Column[] =>
    candidates.flatMap((each) => {
      if (!isTooWide() || !kept.delete(each)) return [];
      const qualifying = [...kept].filter(({ column }) => column.qualifies === each.column.key);
      for (const one of qualifying) kept.delete(one);
      return [each, ...qualifying].map(({ column }) => column);
    });
  const same = leaveOut(all.filter(({ column }) => saysTheSame(table, column)));
  const dropped = leaveOut(dropOrder([...kept]));
  // In the order of the table, not in that of leaving out.
  const inOrder = (columns: readonly Column[]) => table.columns.filter((column) => columns.includes(column));
  const shown = { ...table, columns: [...kept].map(({ column }) => column) };
  return {
    table: shown,
    columns: narrow(measureColumns(shown), width),
    same: inOrder(same),
    dropped: inOrder(dropped),
    fullWidth,
  };
}

function measureColumns(table: Table): MeasuredColumn[] {
  const texts = markedTexts(table).map((row) => row.map(ofTerminal));
  const widest = (index: number, widthOf: (text: string) => number) =>
    texts.reduce((width, row) => Math.max(width, widthOf(row[index]!)), 1);
  return table.columns.map((column, index) => {
    const heading = ofTerminal(headingText(column));
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
 * Details first, then what is not stressed, then the rest but for one measured column, last the names but for one. What
 * qualifies another column goes with that.
 */
function dropOrder(columns: readonly MeasuredColumn[]): MeasuredColumn[] {
  const firstMeasured = columns.findIndex(({ column }) => isMeasured(column));
  const nameCount = Math.max(1, firstMeasured);
  const isName = (each: MeasuredColumn) => columns.indexOf(each) < nameCount;
  const rank = (each: MeasuredColumn): number => {
    if (each.column.detail) return 0;
    if (isName(each)) return 3;
    return each.column.emphasis === undefined ? 1 : 2;
  };
  const stands = ({ column: { qualifies } }: MeasuredColumn) =>
    !columns.some(({ column }) => column.key === qualifies);
  const strongest =
    columns.find((each) => stands(each) && rank(each) === 2) ?? columns.slice(nameCount).find(stands);
  return columns
    .filter((each, index) => index > 0 && each !== strongest && stands(each))
    .toReversed()
    .sort((a, b) => rank(a) - rank(b));
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
