import { isAbsent } from './cell-text.ts';
import { LEAST_DECIMAL } from './number-text.ts';
import { type Unit, fittingUnit, smallerUnits } from './units.ts';
import type { Column, Row, Table } from '../model.ts';

/**
 * The table with a unit for every column of bytes or durations that names none, so that the heading says it and cells
 * compare by their digits: the unit of the median of what is not 0; or, where the smallest cell would need an exponent
 * in it, the largest smaller unit in which none does. A column without a number has none.
 */
export function withColumnUnits(table: Table): Table {
  const groups = Map.groupBy(table.columns, groupOf);
  return {
    ...table,
    columns: table.columns.map((column) => {
      if (column.unit !== undefined) return column;
      const group = groups.get(groupOf(column))!;
      const unit = columnUnit(
        column.kind,
        group.filter(({ kind }) => kind === column.kind).flatMap(({ key }) => numbersOf(key, table.rows)),
      );
      return unit === undefined ? column : { ...column, unit: unit.name };
    }),
  };
}

function groupOf({ unitGroup, key }: Column): string {
  return unitGroup ?? key;
}

function numbersOf(key: string, rows: readonly Row[]): number[] {
  return rows.flatMap((row) => {
    const value = row[key];
    return typeof value === 'number' && Number.isFinite(value) && !isAbsent(value, row) ? [value] : [];
  });
}

function columnUnit(kind: Column['kind'], values: readonly number[]): Unit | undefined {
  if (values.length === 0) return undefined;
  const magnitudes = values
    .map(Math.abs)
    .filter((magnitude) => magnitude > 0)
    .sort((a, b) => a - b);
  // Of an even count the upper one: of 512 MiB and 3 GiB, GiB.
  const median = magnitudes[Math.floor(magnitudes.length / 2)] ?? 0;
  const fitting = fittingUnit(kind, median);
  if (fitting === undefined || magnitudes.length === 0) return fitting;
  const candidates = smallerUnits(kind, fitting);
  return candidates.find(({ size }) => magnitudes[0]! / size >= LEAST_DECIMAL) ?? candidates.at(-1);
}
