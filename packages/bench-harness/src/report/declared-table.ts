import type { Cell, Column, Row, Table } from '@roofline/reports';
import type { AnyCell } from '../parameters/cell-names.ts';
import { parameterColumns, plainValues, sharedCaption } from '../parameters/parameter-columns.ts';
import type { Parameters } from '../parameters/parameter.ts';
import type { CellRecord } from '../records/record.ts';
import { ceilingsSpread } from '../measuring/ceilings.ts';

/** What a row shows: a cell, or a part of one that has an outcome of its own. */
export interface RowItem {
  readonly record: CellRecord;
  readonly cell: AnyCell;
  readonly outcome?: Pick<Row, 'status' | 'error'>;
}

/** A column, and how its values are read. */
export interface ColumnOf<Item> extends Column {
  /** Null or undefined where there is none. Of rows that were not measured it is not asked. */
  value(item: Item): Cell;
  /** The standard deviation, in the same unit; rows hold it as `uncertaintyKey`, without that as the key with `Std` after it. */
  deviation?(item: Item): number | null;
  /** Whether `value` is asked of rows that were not measured too: what it says is known without. */
  everyRow?: boolean;
  /** Where the column is shown, if not everywhere: where a row has a value, or by the measured rows. Rows hold its values anyway. */
  shown?: 'filled' | ((items: readonly Item[]) => boolean);
}

/** A table: what its rows hold, and which of it has a column. */
export interface TableOf<Item extends RowItem> {
  readonly id: string;
  readonly title: string;
  readonly caption?: string | ((items: readonly Item[]) => string);
  /** Those of the cells, if rows begin with them; the caption says what all of them share. */
  readonly parameters?: Parameters;
  readonly columns: readonly ColumnOf<Item>[];
  /** The keys of those that this table shows, in its order, if not all: rows hold the values of the others too. */
  readonly shows?: readonly (string | (Pick<Column, 'key'> & Partial<Column>))[];
  /** What rows hold besides, for programs that read them. */
  facts?(item: Item): Row;
}

/** The table of some rows. */
export function tableOf<Item extends RowItem>(declared: TableOf<Item>, items: readonly Item[]): Table {
  const { id, title, caption, parameters = {} } = declared;
  const cells = items.map(({ cell }) => cell);
  const rows = items.map((item) => rowOf(declared, item));
  const measured = items.filter((_, index) => rows[index]!.status === 'ok');
  const isShown = ({ shown, key }: ColumnOf<Item>) =>
    shown === undefined || (shown === 'filled' ? isFilled(rows, key) : shown(measured));
  const captions = [
    typeof caption === 'function' ? caption(items) : caption,
    sharedCaption(parameters, cells),
  ].filter(Boolean);
  return {
    ...{ kind: 'table', id, title },
    ...(captions.length > 0 && { caption: captions.join(' ') }),
    columns: [
      ...parameterColumns(parameters, cells),
      ...withRoofSpread(
        shownColumns(declared).filter(isShown).map(plainColumn),
        items.map(({ record }) => record),
      ),
    ],
    rows,
  };
}

/** The same where there are rows, else none. */
export function tablesOf<Item extends RowItem>(declared: TableOf<Item>, items: readonly Item[]): Table[] {
  return items.length === 0 ? [] : [tableOf(declared, items)];
}

function shownColumns<Item extends RowItem>({ id, columns, shows }: TableOf<Item>): ColumnOf<Item>[] {
  return (shows ?? columns).map((shown) => {
    const change = typeof shown === 'string' ? { key: shown } : shown;
    const found = columns.find(({ key }) => key === change.key);
    if (!found) throw new Error(`The table ${id} shows a column ${change.key} that it does not have.`);
    return { ...found, ...change };
  });
}

function rowOf<Item extends RowItem>({ columns, facts, parameters = {} }: TableOf<Item>, item: Item): Row {
  const outcome = item.outcome ?? outcomeOf(item.record);
  const isMeasured = outcome.status === 'ok';
  const asked = columns.filter(({ everyRow }) => isMeasured || everyRow);
  const values = asked.flatMap((column): [string, Cell][] => [
    [column.key, column.value(item)],
    ...(column.deviation ? [[deviationKey(column), column.deviation(item)] as [string, Cell]] : []),
  ]);
  return {
    ...plainValues(parameters, item.cell),
    ...outcome,
    ...Object.fromEntries(values.filter(([, value]) => value !== undefined)),
    ...(isMeasured && facts?.(item)),
  };
}

/** How a cell ended, and with what error if it failed. */
export function outcomeOf({ status, error }: CellRecord): Pick<Row, 'status' | 'error'> {
  return { status, ...(error ? { error: error.message } : {}) };
}

/** The column without what calculates its values. */
function plainColumn<Item>(column: ColumnOf<Item>): Column {
  const { value: _, everyRow: __, shown: ___, deviation, ...plain } = column;
  return { ...plain, ...(deviation && { uncertaintyKey: deviationKey(column) }) };
}

function deviationKey({ key, uncertaintyKey }: Column): string {
  return uncertaintyKey ?? `${key}Std`;
}

function isFilled(rows: readonly Row[], key: string): boolean {
  return rows.some((row) => row[key] !== undefined && row[key] !== null);
}

/** Adds to the columns of shares of the roof how far the roof's own measurements lie apart, where the records know. */
export function withRoofSpread(columns: readonly Column[], records: readonly CellRecord[]): Column[] {
  const spread = Math.max(0, ...records.map(({ ceilings }) => (ceilings ? ceilingsSpread(ceilings) : 0)));
  return columns.map((column) => (column.emphasis === 'roof' && spread > 0 ? { ...column, spread } : column));
}
