import CliTable from 'cli-table3';
import { checkTable } from '../check/check-model.ts';
import { flag, length, optionsOf, requireThat, text } from '../check/checks.ts';
import { ReportError, type Row, type Table } from '../model.ts';
import { alignmentOf, failureNotes, headingText, statusMarker } from '../table/cell-text.ts';
import { withColumnUnits } from '../table/column-units.ts';
import { displayWidth } from './display-width.ts';
import { fitTable, GAP, type FittedColumn, type FittedTable } from './fit-columns.ts';
import { shorten } from './shorten.ts';
import { SPREAD_NOTE, hasMarks, markedTexts } from './spread-marks.ts';
import { bound, breakLongWords, ofTerminal, unbound, wrapWords } from './terminal-text.ts';

const RULE = '─';
/** What lines of a note begin with, but for the first. */
const HANG = '  ';
const BOLD = 1;
const DIM = 2;
const YELLOW = 33;

/** Rows that are laid out together: cli-table3's time for a table grows with the square of its rows. */
const LINES_AT_ONCE = 100;

const BORDERLESS = Object.fromEntries(
  ['top', 'bottom', 'left', 'right', 'mid'].flatMap((side) => [
    [side, ''],
    ...['left', 'mid', 'right'].map((other) => [`${side}-${other}`, '']),
  ]),
);

/** Options of `renderTerminal`. */
export interface TerminalOptions {
  /** Columns of the terminal; 80 if not given. */
  width?: number;
  /** Write ANSI colours. */
  color?: boolean;
}

const terminalOptions = optionsOf({ width: length, color: flag });
const sentenceOptions = optionsOf({ width: length });

/**
 * A table for a terminal. Where it is wider than `width`, headings break at words, then texts break, or are shortened in
 * the middle where their column says `overflow: 'shorten'`; and where that is not enough columns are left out, those
 * with `detail` first, and a line says which. A column that `qualifies` another, as an interval does a ratio, is shown
 * wherever that is. A number is never cut: on a terminal too narrow for one number next to the name of its row, lines
 * are longer than `width`. One whose standard deviation is over 5 % of it is marked, and a line says so.
 *
 * @throws ReportError for a table without columns.
 *
 * @example
 * ```ts
 * import { type Table, renderTerminal } from '@roofline/reports';
 *
 * const table: Table = {
 *   kind: 'table',
 *   id: 'steps',
 *   title: 'Steps',
 *   columns: [{ key: 'ms', label: 'Time', kind: 'duration', unit: 'ms' }],
 *   rows: [{ ms: 1.5 }, { status: 'out-of-memory', error: 'asked for 2 GiB' }],
 * };
 * console.log(renderTerminal(table, { width: 80 }));
 * ```
 */
export function renderTerminal(table: Table, options: TerminalOptions = {}): string {
  checkTable('renderTerminal', table);
  requireThat('renderTerminal', 'options', options, terminalOptions);
  return drawTable(withColumnUnits(table), options);
}

/**
 * A sentence for a terminal, such as one below a table: broken at words into lines of at most `width` columns, of which all
 * but the first are indented, and never between a number and its unit, nor between backticks. Ends with a line break.
 *
 * @throws ReportError for options that it does not have.
 *
 * @example
 * ```ts
 * import { renderSentence } from '@roofline/reports';
 *
 * process.stdout.write(renderSentence('Compiling takes 608 ms.', { width: 80 }));
 * ```
 */
export function renderSentence(sentence: string, options: Pick<TerminalOptions, 'width'> = {}): string {
  requireThat('renderSentence', 'the sentence', sentence, text);
  requireThat('renderSentence', 'options', options, sentenceOptions);
  return `${wrapWords(ofTerminal(sentence), options.width ?? 80, HANG)}\n`;
}

function drawTable(table: Table, options: TerminalOptions): string {
  if (table.columns.length === 0) throw new ReportError(`table '${table.id}' has no columns`);
  const { width = 80, color = false } = options;
  const style = (code: number, text: string) => (color ? `\u001b[${code}m${text}\u001b[0m` : text);
  const fitted = fitTable(table, width);
  const cell = (row: Row, text: string, { column, width: room }: FittedColumn) => {
    if (statusMarker(row) === text) return style(YELLOW, text);
    const shown = column.overflow === 'shorten' ? shortenTo(text, room) : breakLongWords(text, room);
    return column.emphasis === 'strong' ? style(BOLD, shown) : shown;
  };
  const { columns } = fitted;
  const grid = drawGrid(columns, [
    columns.map(({ column, width: room }) =>
      style(BOLD, breakLongWords(bound(ofTerminal(headingText(column))), room)),
    ),
    columns.map(({ width: room }) => style(DIM, RULE.repeat(room))),
    ...markedTexts(fitted.table).map((texts, i) =>
      texts.map((text, index) => cell(fitted.table.rows[i]!, bound(ofTerminal(text)), columns[index]!)),
    ),
  ]);
  const words = (code: number, text: string, indent = HANG) =>
    style(code, wrapWords(ofTerminal(text), width, indent));
  const caption = captionOf(table, fitted);
  const lines = [
    words(BOLD, table.title, ''),
    ...(caption ? [words(DIM, caption, '')] : []),
    unbound(grid),
    ...(hasMarks(fitted.table) ? [words(YELLOW, SPREAD_NOTE)] : []),
    ...leftOutNotes(fitted, width).map((note) => words(DIM, note)),
    ...failureNotes(table).map((note) => words(YELLOW, note)),
  ];
  return `${lines.join('\n')}\n`;
}

/** How a caption says what all rows share. */
const ALL_ROWS = /\bAll rows: (.*)\.$/s;

/** The caption with what all rows share, where there is no room for it in each. */
function captionOf({ caption = '', rows }: Table, { same }: FittedTable): string {
  if (same.length === 0) return caption;
  const shared = same.map(({ key, label }) => `${label} ${String(rows[0]![key])}`).join(', ');
  if (ALL_ROWS.test(caption)) return caption.replace(ALL_ROWS, (_, said) => `All rows: ${said}, ${shared}.`);
  return [caption, `All rows: ${shared}.`].filter(Boolean).join(caption.endsWith('.') ? ' ' : '\n');
}

/** Which columns are not shown. */
function leftOutNotes({ dropped, fullWidth }: FittedTable, width: number): string[] {
  const labels = dropped.map(headingText);
  if (labels.length === 0) return [];
  return [`${width} columns leave out: ${labels.join('; ')}. ${fullWidth} show all.`];
}

/** A text of at most `width` columns, without its middle. */
function shortenTo(text: string, width: number): string {
  let shown = shorten(text, width);
  // Wide characters take two columns each.
  for (let longest = width - 1; displayWidth(shown) > width && longest > 0; longest--)
    shown = shorten(text, longest);
  return shown;
}

/** The headings end at the rule, whatever the number of their lines. */
function drawGrid(columns: readonly FittedColumn[], lines: string[][]): string {
  const [headings = [], ...rest] = lines;
  const parts = [drawLines(columns, [headings], 'bottom')];
  for (let first = 0; first < rest.length; first += LINES_AT_ONCE)
    parts.push(drawLines(columns, rest.slice(first, first + LINES_AT_ONCE), 'top'));
  return parts.join('\n');
}

function drawLines(columns: readonly FittedColumn[], lines: string[][], vAlign: 'top' | 'bottom'): string {
  const grid = new CliTable({
    chars: { ...BORDERLESS, middle: ' '.repeat(GAP) },
    style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [] },
    colWidths: columns.map(({ width }) => width),
    colAligns: columns.map(({ column }) => alignmentOf(column)),
    wordWrap: true,
  });
  for (const line of lines) grid.push(line.map((content) => ({ content, vAlign, wrapOnWordBoundary: true })));
  const drawn = grid.toString().split('\n');
  return drawn.map((line) => line.trimEnd()).join('\n');
}
