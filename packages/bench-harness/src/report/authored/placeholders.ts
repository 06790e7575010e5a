import { ratioTable, type Cell, type Report, type Row, type Table } from '@roofline/reports';
import { max, median, min } from 'simple-statistics';
import { UsageError } from '../../errors.ts';
import { valueText } from '../values-in-words.ts';

const PLACEHOLDER = /\{([^{}]*)\}/g;
/** `min ratio of beside-pytorch where mode = train-step, dtype = bfloat16`. */
const QUERY = /^(?:(min|max|median) )?([\w-]+) of ([\w:.-]+)(?: where (.+))?$/;
const picks = { min, max, median } as const;

/** What a `report.yaml` asks of the records. */
interface Query {
  readonly pick: keyof typeof picks | undefined;
  readonly key: string;
  readonly table: string;
  readonly conditions: readonly (readonly [key: string, value: string])[];
}

/**
 * Fills the placeholders of a text from the tables of a report: `{max ratio of beside-pytorch where mode = train-step}`. The
 * function that it gives throws UsageError for one that cannot be filled, and for a number that is not in one.
 */
export function placeholders(report: Report, path: string): (text: string) => string {
  const tables = tablesOf(report);
  const names = new Set(
    tables.flatMap(({ rows }) => rows.flatMap((row) => Object.values(row).filter(isText))),
  );
  return (text) => {
    refuseNumbers(text, names, path);
    return text.replace(PLACEHOLDER, (_, asked: string) => {
      try {
        return answer(queryOf(asked), tables);
      } catch (cause) {
        throw new UsageError(`${path}: {${asked}}: ${(cause as Error).message}`, { cause });
      }
    });
  };
}

function isText(value: Cell): value is string {
  return typeof value === 'string';
}

/** All tables, and the numbers of comparisons as such. */
function tablesOf({ chart, sections }: Report): Table[] {
  const blocks = [...(chart ? [chart] : []), ...sections.flatMap((section) => section.blocks)];
  return blocks.flatMap((block) => {
    if (block.kind === 'table') return [block];
    return block.kind === 'ratios' ? [{ ...ratioTable(block), id: block.id }] : [];
  });
}

/** Names may hold digits (bfloat16, H200), and whatever the records name (2.7b); all else would go stale. */
function refuseNumbers(text: string, names: ReadonlySet<string>, path: string): void {
  const words = text
    .replace(PLACEHOLDER, '')
    .replace(/\]\([^)]*\)/g, ']')
    .split(/\s+/);
  const number = words
    .map((word) => word.replace(/^[^\p{L}\d]+|[^\p{L}\d%×]+$/gu, ''))
    .find((word) => /\d/.test(word) && !/^\p{L}/u.test(word) && !names.has(word));
  if (number !== undefined) {
    throw new UsageError(
      `${path}: the number ${number} is written out in "${text}". Let the records fill it, ` +
        'as {max ratio of TABLE where mode = train-step}, so that it stays theirs.',
    );
  }
}

function queryOf(asked: string): Query {
  const found = QUERY.exec(asked.trim());
  if (!found) throw new Error('expected [min|max|median] COLUMN of TABLE [where COLUMN = VALUE, ...]');
  const [, pick, key, table, where] = found as unknown as [string, Query['pick'], string, string, string?];
  const conditions = (where?.split(',') ?? []).map((condition) => {
    const [name, value, ...rest] = condition.split('=').map((part) => part.trim());
    if (!name || !value || rest.length > 0) throw new Error(`'${condition.trim()}' is no COLUMN = VALUE`);
    return [name, value] as const;
  });
  return { pick, key, table, conditions };
}

function answer({ pick, key, table: id, conditions }: Query, tables: readonly Table[]): string {
  const table = tables.find((each) => each.id === id);
  if (!table)
    throw new Error(`there is no table ${id}; there are: ${tables.map((each) => each.id).join(', ')}`);
  const column = table.columns.find((each) => each.key === key);
  if (!column) throw new Error(`${id} has no column ${key}; it has: ${keysOf(table)}`);
  const [unknown] = conditions.filter(([name]) => !table.rows.some((row) => row[name] !== undefined));
  if (unknown) throw new Error(`rows of ${id} have no ${unknown[0]}; they have: ${keysOf(table)}`);
  const values = matching(table.rows, conditions).flatMap((row) => row[key] ?? []);
  if (values.length === 0) throw new Error(`no row of ${id} has a ${key} there`);
  if (pick === undefined) {
    const [only, ...others] = new Set(values);
    if (others.length > 0)
      throw new Error(`${values.length} rows have one: say min, max or median, or where`);
    return valueText(only!, column);
  }
  const numbers = values.filter((value) => typeof value === 'number');
  if (numbers.length < values.length) throw new Error(`${key} is no number`);
  return valueText(picks[pick](numbers), column);
}

function matching(rows: readonly Row[], conditions: Query['conditions']): Row[] {
  return rows.filter((row) => conditions.every(([name, value]) => String(row[name]) === value));
}

function keysOf({ columns }: Table): string {
  return columns.map(({ key }) => key).join(', ');
}
