import type { Row } from '@roofline/reports';
import { AnsweringRow, NothingMeasured, Rows } from './rows.ts';

/** A sentence that is computed from the rows of one table. */
export interface Answer {
  /** The table: `RUN/TABLE`; a star at the end of the run's name stands for whatever follows. */
  readonly of: string;
  /** The numbers that the sentence stands on: rows that lack one of them do not count. */
  readonly numbers: readonly string[];
  /** Null where the rows do not answer, as where one throws NothingMeasured; asked only if there are some. */
  say(rows: Rows): string | null;
}

/** The sentence that `answer` makes of these tables; null where nothing of it was measured. */
export function sentenceOf(answer: Answer, tables: ReadonlyMap<string, readonly Row[]>): string | null {
  const rows = rowsOf(answer.of, tables).filter((row) => isMeasured(row, answer.numbers));
  if (rows.length === 0) return null;
  try {
    return answer.say(new Rows(rows.map((row) => new AnsweringRow(row))));
  } catch (error) {
    if (error instanceof NothingMeasured) return null;
    throw error;
  }
}

function rowsOf(pattern: string, tables: ReadonlyMap<string, readonly Row[]>): readonly Row[] {
  return [...tables].flatMap(([name, rows]) => (isNamed(pattern, name) ? rows : []));
}

/** Whether a table `RUN/TABLE` is one that `pattern` means. */
export function isNamed(pattern: string, name: string): boolean {
  const [run, table] = pattern.split('/') as [string, string];
  const [ownRun, ownTable] = name.split('/') as [string, string];
  if (table !== ownTable) return false;
  return run.endsWith('*') ? ownRun.startsWith(run.slice(0, -1)) : ownRun === run;
}

function isMeasured(row: Row, numbers: readonly string[]): boolean {
  return numbers.every((key) => Number.isFinite(row[key]));
}
