import type { Cell, Column, Row, Table } from '@roofline/reports';
import type { JsonObject } from '../records/json.ts';
import type { CellRecord } from '../records/record.ts';
import { outcomeOf, plainParameters } from '../report/cell-row.ts';
import { parameterColumn } from '../report/parameter-titles.ts';
import { withRoofSpread } from '../report/roof-spread.ts';
import type { ResultColumn } from './definition.ts';
import { interpretCell, type Told } from './interpret-cell.ts';
import { medianColumn, roofColumns } from '../report/roof-columns.ts';

const timeColumns: readonly Column[] = [
  {
    key: 'meanMs',
    label: 'Time',
    unit: 'ms',
    kind: 'duration',
    uncertaintyKey: 'stdMs',
    qualifies: 'medianMs',
    description: 'Mean and standard deviation over the samples.',
  },
  medianColumn,
  ...roofColumns,
];

/** One row a record: its parameters, its times next to their floor, and the benchmark's own columns. */
export function defaultTable<C extends JsonObject, R extends JsonObject>(
  definition: Told<C, R>,
  records: readonly CellRecord[],
): Table {
  const rows = records.map((record) => defaultRow(definition, record));
  const isFilled = ({ key }: Column) => rows.some((row) => row[key] !== undefined && row[key] !== null);
  const parameters = new Set(records.flatMap((record) => Object.keys(plainParameters(record))));
  return {
    kind: 'table',
    id: definition.name,
    title: definition.title,
    columns: [
      ...[...parameters].map((key) => parameterColumn(key)),
      ...withRoofSpread(timeColumns.filter(isFilled), records),
      ...(definition.columns ?? []).map(plainColumn),
    ],
    rows,
  };
}

function defaultRow<C extends JsonObject, R extends JsonObject>(
  definition: Told<C, R>,
  record: CellRecord,
): Row {
  const { cell, result, time, floorMs } = interpretCell(definition, record);
  const row: Row = { ...plainParameters(record), ...outcomeOf(record) };
  if (result === null) return row;
  const own = (definition.columns ?? []).flatMap((column): [string, Cell][] => [
    [column.key, column.value(result, cell)],
    ...(column.deviation ? [[deviationKey(column), column.deviation(result, cell)] as [string, Cell]] : []),
  ]);
  const times: Row = time
    ? {
        meanMs: time.mean,
        // One sample has no spread.
        stdMs: time.count > 1 ? time.std : null,
        medianMs: time.median,
        roofShare: floorMs === null ? null : floorMs / time.median,
      }
    : {};
  return { ...row, ...times, floorMs, ...Object.fromEntries(own) };
}

/** The column without what calculates its values. */
function plainColumn<C, R>(column: ResultColumn<C, R>): Column {
  const { value: _, deviation, ...plain } = column;
  return { ...plain, ...(deviation && { uncertaintyKey: deviationKey(column) }) };
}

function deviationKey({ key }: Pick<Column, 'key'>): string {
  return `${key}Std`;
}
