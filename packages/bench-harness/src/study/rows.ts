import { formatBytes, formatDuration, formatPercent, formatRatio, type Row } from '@roofline/reports';
import { valuesInWords } from '../report/values-in-words.ts';

/** Thrown where rows are asked that are not there: nothing can be said of them. */
export class NothingMeasured extends Error {}

/** A row whose numbers are all there, by the keys of its columns; and the one that it is compared with. */
export class AnsweringRow {
  readonly #row: Row;
  readonly beside: AnsweringRow | undefined;

  constructor(row: Row, beside?: AnsweringRow) {
    this.#row = row;
    this.beside = beside;
  }

  number = (key: string) => this.#row[key] as number;
  text = (key: string) => String(this.#row[key] ?? '');
  duration = (key: string) => formatDuration(this.number(key));
  bytes = (key: string) => formatBytes(this.number(key));
  percent = (key: string) => formatPercent(this.number(key));
  /** One number over another, as `1.96×`. */
  over = (key: string, other: string) => formatRatio(this.number(key) / this.number(other));
  comparedWith = (beside: AnsweringRow) => new AnsweringRow(this.#row, beside);
}

type Read = string | ((row: AnsweringRow) => number);

/** Rows that answer something. What is asked of none throws NothingMeasured. */
export class Rows {
  readonly all: readonly AnsweringRow[];

  constructor(all: readonly AnsweringRow[]) {
    this.all = all;
  }

  get first(): AnsweringRow {
    if (!this.all[0]) throw new NothingMeasured();
    return this.all[0];
  }

  /** The row with the least of it, and that with the most. */
  least = (key: string) => this.all.reduce((a, b) => (b.number(key) < a.number(key) ? b : a), this.first);
  most = (key: string) => this.all.reduce((a, b) => (b.number(key) > a.number(key) ? b : a), this.first);

  filter = (isWanted: (row: AnsweringRow) => boolean) => new Rows(this.all.filter(isWanted));
  /** Those whose texts are these. */
  where = (texts: Readonly<Record<string, string>>) =>
    this.filter((row) => Object.entries(texts).every(([key, text]) => row.text(key) === text));

  /** Each that has one with the same texts by these keys among the others, next to that. */
  beside(others: Rows, keys: readonly string[]): Rows {
    const known = new Map(others.all.map((row) => [nameBy(keys, row), row]));
    return new Rows(
      this.all.flatMap((row) => {
        const beside = known.get(nameBy(keys, row));
        return beside ? [row.comparedWith(beside)] : [];
      }),
    );
  }

  /** Rows with the first of two texts of a column, next to those with the second that say the same by these keys. */
  pairs(keys: readonly string[], column: string, [first, second]: readonly [string, string]): Rows {
    return this.where({ [column]: first }).beside(this.where({ [column]: second }), keys);
  }

  /** The rows of each text of these keys, which is their name. */
  groups = (keys: string | readonly string[]) =>
    [...Map.groupBy(this.all, (row) => nameBy([keys].flat(), row))].map(([name, rows]): [string, Rows] => [
      name,
      new Rows(rows),
    ]);

  /** What is said of the rows of each text of these keys, between semicolons; null is nothing. */
  by(keys: string | readonly string[], part: (of: Rows, name: string) => string | null): string {
    const parts = this.groups(keys).flatMap(([name, rows]) => part(rows, name) ?? []);
    if (parts.length === 0) throw new NothingMeasured();
    return parts.join('; ');
  }

  numbers = (of: Read) => this.all.map((row) => (typeof of === 'string' ? row.number(of) : of(row)));
  /** Of each over the one that it is compared with. */
  overBeside = (key: string, other = key) =>
    this.numbers((row) => row.number(key) / row.beside!.number(other));
  /** `**1.92×** to **2.41×**`, the least and the most. */
  ratios = (of: Read) => ratioWords(this.numbers(of));
  /** Shares, each by the text of another column. */
  shares = (key: string, name: string) =>
    valuesInWords(
      this.all.map((row) => ({ name: row.text(name), value: row.number(key) })),
      formatPercent,
    );
}

function nameBy(keys: readonly string[], row: AnsweringRow): string {
  return keys.map((key) => row.text(key)).join(', ');
}

/** `**1.96×**`, or of several `**1.92×** to **2.41×**`, the least and the most. */
export function ratioWords(ratios: readonly number[]): string {
  if (ratios.length === 0) throw new NothingMeasured();
  const ends = [Math.min(...ratios), Math.max(...ratios)].map((ratio) => `**${formatRatio(ratio)}**`);
  return [...new Set(ends)].join(' to ');
}
