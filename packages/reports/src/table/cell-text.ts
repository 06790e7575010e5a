import { type Notation, headingUnit, measuredText, notationOf, rawUnit } from './number-text.ts';
import { roofShareText } from './roof-share.ts';
import { shorten } from '../text/shorten.ts';
import type { Cell, Column, Row, RowStatus, Table } from '../model.ts';

/** What is shown in the measured cells of a row that has no measurement. */
export const STATUS_MARKERS: Readonly<Record<Exclude<RowStatus, 'ok'>, string>> = {
  'out-of-memory': 'OOM',
  timeout: 'timeout',
  failed: 'failed',
  interrupted: 'interrupted',
  'not-available': 'not available',
};

export const MISSING = '–';

/** Characters of an error in a note. */
const LONGEST_REASON = 300;

/** A column's heading: its label and the unit of its cells. */
export function headingText(column: Column): string {
  const unit = headingUnit(column);
  return unit ? `${column.label} (${unit})` : column.label;
}

/** The heading of a column of raw values. */
export function rawHeadingText(column: Column): string {
  const unit = rawUnit(column);
  // `Time (%)` of Nsight's tables holds fractions there.
  const label = column.kind === 'percent' ? column.label.replace(/ \(%\)$/, '') : column.label;
  return unit ? `${label} (${unit})` : label;
}

export function alignmentOf(column: Column): 'left' | 'right' | 'center' {
  return column.align ?? (isMeasured(column) ? 'right' : 'left');
}

/** Whether a column holds numbers, and so is empty in a row that could not be measured. */
export function isMeasured(column: Column): boolean {
  return column.kind !== 'text' && column.kind !== 'status';
}

/** The marker of a row that did not end well, undefined for one that did. */
export function statusMarker(row: Row): string | undefined {
  return row.status === undefined || row.status === 'ok' ? undefined : STATUS_MARKERS[row.status];
}

/** The cells of all rows as text: the numbers of a column in one notation. */
export function tableTexts(table: Table): string[][] {
  const notations = table.columns.map((column) => columnNotation(column, table.rows));
  return table.rows.map((row) => rowTexts(table, row, notations));
}

function columnNotation(column: Column, rows: readonly Row[]): Notation {
  if (!isMeasured(column)) return 'decimal';
  const values = rows.map((row) => row[column.key]).filter((value) => typeof value === 'number');
  return notationOf(values, column);
}

/** A row that did not end well says so in every measured cell it left empty. */
function rowTexts(table: Table, row: Row, notations: readonly Notation[]): string[] {
  const texts = table.columns.map((column, i) => cellText(column, row, notations[i]!));
  const marker = statusMarker(row);
  if (marker === undefined || saysSo(table, row)) return texts;
  const marked = (text: string) => (text === MISSING ? marker : `${text} (${marker})`);
  return texts.map((text, index) => (index === texts.length - 1 ? marked(text) : text));
}

/** How many rows ended in each way but well, with the first line of the error; errors may differ in their numbers. */
export function failureNotes(table: Table): string[] {
  const failures = table.rows.flatMap((row) => {
    const marker = statusMarker(row);
    if (marker === undefined) return [];
    const [firstLine = ''] = row.error?.split('\n', 1) ?? [];
    return [{ marker, reason: shorten(firstLine.trim(), LONGEST_REASON) }];
  });
  const groups = Map.groupBy(failures, ({ marker, reason }) => `${marker}: ${reason.replace(/\d+/g, '#')}`);
  return [...groups.values()].map((group) => {
    const { marker, reason } = group[0]!;
    const rows = `${group.length} ${group.length === 1 ? 'row' : 'rows'} ${marker}`;
    if (reason === '') return rows;
    return group.every((each) => each.reason === reason)
      ? `${rows}: ${reason}`
      : `${rows}, such as: ${reason}`;
  });
}

/** Whether a row of this table shows its status, in a column for it or in an empty measured cell. */
function saysSo(table: Table, row: Row): boolean {
  return table.columns.some(
    (column) => column.kind === 'status' || (isMeasured(column) && isAbsent(row[column.key], row)),
  );
}

/** Whether a column holds shares of the roof: a bar in HTML, and words where they are not below it. */
export function isRoofShare({ kind, emphasis }: Column): boolean {
  return kind === 'percent' && emphasis === 'roof';
}

function cellText(column: Column, row: Row, notation: Notation): string {
  const value = row[column.key];
  if (column.kind === 'status') return statusMarker(row) ?? String(value ?? 'ok');
  if (isMeasured(column) && isAbsent(value, row)) return statusMarker(row) ?? MISSING;
  if (value === null || value === undefined || value === '') return MISSING;
  if (typeof value === 'string' || column.kind === 'text') return String(value);
  if (isRoofShare(column)) return roofShareText(value, column.spread);
  return measuredText(value, column, deviationOf(column, row), notation);
}

/**
 * Whether a row has no value here. NaN is a value of a run that ended well (a diverged loss), and none of one that
 * did not.
 */
export function isAbsent(value: Cell, row: Row): boolean {
  if (value === null || value === undefined || value === '') return true;
  return statusMarker(row) !== undefined && typeof value === 'number' && !Number.isFinite(value);
}

/** The standard deviation of a row's value in a column; undefined where there is none. */
export function deviationOf(column: Column, row: Row): number | undefined {
  const deviation = column.uncertaintyKey === undefined ? undefined : row[column.uncertaintyKey];
  return typeof deviation === 'number' ? deviation : undefined;
}
