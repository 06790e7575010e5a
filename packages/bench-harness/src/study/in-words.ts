import { formatRatio } from '@roofline/reports';
import type { NamedValue } from '../report/values-in-words.ts';
import type { AnsweringRow } from './answer.ts';

type Rows = readonly AnsweringRow[];

/** The row with the least of it. */
export function best(rows: Rows, key: string): AnsweringRow {
  return rows.reduce((a, b) => (b.number(key) < a.number(key) ? b : a));
}

/** The row with the most of it. */
export function worst(rows: Rows, key: string): AnsweringRow {
  return rows.reduce((a, b) => (b.number(key) > a.number(key) ? b : a));
}

/** `**1.96×**`, or of several `**1.92×** to **2.41×**`, the least and the most. */
export function ratioWords(ratios: readonly number[]): string {
  const ends = [...new Set([Math.min(...ratios), Math.max(...ratios)].map((ratio) => formatRatio(ratio)))];
  return ends.map((end) => `**${end}**`).join(' to ');
}

export function named(rows: Rows, key: string, name: (row: AnsweringRow) => string): NamedValue[] {
  return rows.map((row) => ({ name: name(row), value: row.number(key) }));
}

/** Pairs of rows that say the same by these keys, one of each kind. */
export function pairsOf(
  rows: Rows,
  keys: readonly string[],
  isFirst: (row: AnsweringRow) => boolean,
  isSecond: (row: AnsweringRow) => boolean,
): [AnsweringRow, AnsweringRow][] {
  const name = (row: AnsweringRow) => keys.map((key) => row.text(key)).join(' · ');
  const seconds = new Map(rows.filter(isSecond).map((row) => [name(row), row]));
  return rows.filter(isFirst).flatMap((row) => {
    const second = seconds.get(name(row));
    return second ? [[row, second] as [AnsweringRow, AnsweringRow]] : [];
  });
}
