import CliTable from 'cli-table3';
import {
  alignmentOf,
  failureNotes,
  headingText,
  isMeasured,
  rowTexts,
  statusMarker,
} from '../table/cell-text.ts';
import { displayWidth, longestWordWidth } from './display-width.ts';
import { checkTable } from '../check/check-model.ts';
import { flag, length, optionsOf, requireThat } from '../check/checks.ts';
import { ReportError } from '../model.ts';
import { printable } from './printable.ts';
import { shorten } from './shorten.ts';
import type { Column, Table } from '../model.ts';

const GAP = 2;
/** Characters of a cell, a heading or a note. */
const LONGEST_TEXT = 1000;
/** Longer words than this may be broken. */
const LONGEST_WORD = 24;
const RULE = '─';
const BOLD = 1;
const DIM = 2;
const YELLOW = 33;

const BORDERLESS = Object.fromEntries(
  ['top', 'bottom', 'left', 'right', 'mid'].flatMap((side) => [
    [side, ''],
    ...['left', 'mid', 'right'].map((other) => [`${side}-${other}`, '']),
  ]),
);

/** Options of `renderTerminal`. */
export interface TerminalOptions {
  /** Columns of the terminal. */
  width?: number;
  /** Write ANSI colours. */
  color?: boolean;
}

const terminalOptions = optionsOf({ width: length, color: flag });

interface FittedColumn {
  column: Column;
  index: number;
  width: number;
}

/**
 * A table for a terminal. Where it is wider than `width`, headings wrap at words, then text columns wrap, and
 * last its columns are parted into several tables, each with the leading text columns again. A number is never cut:
 * on a terminal too narrow for one number beside them, lines are longer than `width`.
 *
 * @throws ReportError for a table without columns.
 */
export function renderTerminal(table: Table, options: TerminalOptions = {}): string {
  checkTable('renderTerminal', table);
  requireThat('renderTerminal', 'options', options, terminalOptions);
  const { width = 80, color = false } = options;
  const style = (code: number, text: string) => (color ? `\u001b[${code}m${text}\u001b[0m` : text);
  const texts = table.rows.map((row) => rowTexts(table, row).map(ofTerminal));
  const cell = (rowIndex: number, { column, index }: FittedColumn) => {
    const text = texts[rowIndex]![index]!;
    if (statusMarker(table.rows[rowIndex]!) === text) return style(YELLOW, text);
    return column.emphasis === 'strong' ? style(BOLD, text) : text;
  };
  const parts = partition(fitColumns(table, texts, width), width, table.id).map((part) =>
    drawGrid(part, [
      part.map(({ column }) => style(BOLD, ofTerminal(headingText(column)))),
      part.map((fitted) => style(DIM, RULE.repeat(fitted.width))),
      ...texts.map((_, rowIndex) => part.map((fitted) => cell(rowIndex, fitted))),
    ]),
  );
  const notes = failureNotes(table).map((note) => style(YELLOW, ofTerminal(note)));
  const caption = table.caption ? [style(DIM, ofTerminal(table.caption))] : [];
  return `${[style(BOLD, ofTerminal(table.title)), ...caption, parts.join('\n\n'), ...notes].join('\n')}\n`;
}

/** Without what would move the cursor, but for line breaks; no text fills the screen. */
function ofTerminal(text: string): string {
  return shorten(printable(text).replace(/\r\n?/g, '\n').replaceAll('\t', ' '), LONGEST_TEXT);
}

function drawGrid(part: FittedColumn[], lines: string[][]): string {
  const grid = new CliTable({
    chars: { ...BORDERLESS, middle: ' '.repeat(GAP) },
    style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [] },
    colWidths: part.map(({ width }) => width),
    colAligns: part.map(({ column }) => alignmentOf(column)),
    wordWrap: true,
  });
  lines.forEach((line, lineIndex) =>
    grid.push(
      line.map((content, index) => ({
        content,
        // Headings stand on the rule, whatever the number of their lines.
        vAlign: lineIndex === 0 ? ('bottom' as const) : ('top' as const),
        wrapOnWordBoundary: longestWordWidth(content) <= part[index]!.width,
      })),
    ),
  );
  const drawn = grid.toString().split('\n');
  return drawn.map((line) => line.trimEnd()).join('\n');
}

/** The columns, narrowed towards a total of `width` as far as that cuts no number. */
function fitColumns(table: Table, texts: string[][], width: number): FittedColumn[] {
  const columns = table.columns.map((column, index) => {
    const heading = ofTerminal(headingText(column));
    const headingWord = longestWordWidth(heading);
    const content = widest(texts, index, displayWidth);
    const word = Math.min(LONGEST_WORD, widest(texts, index, longestWordWidth));
    return {
      column,
      index,
      width: Math.max(content, displayWidth(heading), 1),
      headingWrapped: Math.max(content, headingWord, 1),
      allWrapped: Math.max(column.kind === 'text' ? word : content, headingWord, 1),
    };
  });
  for (const narrowest of ['headingWrapped', 'allWrapped'] as const) {
    let excess = totalWidth(columns) - width;
    for (const column of columns.toSorted((a, b) => b.width - a.width)) {
      const cut = Math.min(Math.max(0, excess), column.width - column[narrowest]);
      column.width -= cut;
      excess -= cut;
    }
  }
  return columns;
}

function widest(texts: string[][], index: number, widthOf: (text: string) => number): number {
  return texts.reduce((width, row) => Math.max(width, widthOf(row[index]!)), 0);
}

function partition(columns: FittedColumn[], width: number, id: string): FittedColumn[][] {
  if (columns.length === 0) throw new ReportError(`table '${id}' has no columns`);
  const names = rowNames(columns, width);
  const parts: FittedColumn[][] = [[...names]];
  for (const column of columns.slice(names.length)) {
    const part = parts[parts.length - 1]!;
    if (part.length === names.length || totalWidth([...part, column]) <= width) part.push(column);
    else parts.push([...names, column]);
  }
  return parts;
}

/** The columns that say which row it is: the leading text columns, or the first alone where those are wide. */
function rowNames(columns: FittedColumn[], width: number): FittedColumn[] {
  const firstMeasured = columns.findIndex(({ column }) => isMeasured(column));
  const names = columns.slice(0, Math.max(1, firstMeasured));
  return totalWidth(names) <= width / 2 ? names : names.slice(0, 1);
}

function totalWidth(columns: readonly { width: number }[]): number {
  return columns.reduce((sum, { width }) => sum + width, 0) + GAP * (columns.length - 1);
}
