import type { Column, Row } from '@roofline/reports';
import { cellWords, isSwept, type AnyCell } from './cell-names.ts';
import { isPlain, titleOf, type Parameter, type Parameters } from './parameter.ts';

/** The columns of the parameters that rows of these cells begin with. */
export function parameterColumns(parameters: Parameters, cells: readonly AnyCell[]): Column[] {
  return Object.entries(parameters)
    .filter(([key, { column }]) => hasValues(key, cells) && (column !== 'swept' || isSwept(key, cells)))
    .map(([key, each]) => parameterColumn(key, each, cells));
}

/** The column of one of them; counts are shown as they were given, not rounded. */
export function parameterColumn(key: string, parameter: Parameter, cells: readonly AnyCell[]): Column {
  const { description, emphasis, shown } = parameter;
  return {
    ...{ key: shown?.key ?? key, label: titleOf(key, parameter), kind: 'text' },
    ...(cells.some((cell) => typeof cell[key] === 'number') && { align: 'right' }),
    ...(description !== undefined && { description }),
    ...(emphasis && { emphasis }),
  };
}

/** What all rows share and no column says: `All rows: batch 4, float32.` Empty where there is nothing to say. */
export function sharedCaption(parameters: Parameters, cells: readonly AnyCell[]): string {
  const [first] = cells;
  if (!first) return '';
  const keys = Object.keys(parameters).filter(
    (key) => parameters[key]!.column === 'swept' && !isSwept(key, cells),
  );
  const words = cellWords(parameters, first, keys);
  return words.length === 0 ? '' : `All rows: ${words.join(', ')}.`;
}

/** The values of a cell that rows hold. */
export function plainValues(parameters: Parameters, cell: AnyCell): Row {
  const plain = Object.entries(cell).flatMap(([key, value]) => {
    if (!isPlain(value)) return [];
    const { shown } = parameters[key] ?? {};
    const text = shown ? [[shown.key, shown.text(value as never)] as const] : [];
    return [[key, typeof value === 'boolean' ? String(value) : value] as const, ...text];
  });
  return Object.fromEntries(plain);
}

function hasValues(key: string, cells: readonly AnyCell[]): boolean {
  return cells.some((cell) => isPlain(cell[key]));
}
