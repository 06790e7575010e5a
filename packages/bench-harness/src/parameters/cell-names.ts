import type { Json } from '../records/json.ts';
import { isPlain, valueInWords, type Parameters } from './parameter.ts';

/** A cell, whatever its benchmark. */
export type AnyCell = Readonly<Record<string, unknown>>;

/** Whether cells differ in a parameter. */
export function isSwept(key: string, cells: readonly AnyCell[]): boolean {
  return new Set(cells.map((cell) => cell[key])).size > 1;
}

/** What is said of a cell: `small`, `context 256`, `flash attention`. Usual values are left out. */
export function cellWords(
  parameters: Parameters,
  cell: AnyCell,
  keys: readonly string[] = Object.keys(parameters),
): string[] {
  return keys.flatMap((key) => {
    const value = cell[key];
    if (!isPlain(value) || value === parameters[key]!.usual) return [];
    return [valueInWords(key, parameters[key]!, value)];
  });
}

/** Short names of the cells that share a table or plot. */
export interface CellNames {
  /** `small`, or with what else is swept: `small, context 256`. */
  name(cell: AnyCell): string;
  /** What is the same in all cells and in no name: `context 256, batch 4`. Empty where all is swept. */
  readonly shared: string;
}

/** Names cells by their first parameter and by those of the others that are swept. */
export function cellNames(
  parameters: Parameters,
  cells: readonly AnyCell[],
  keys: readonly string[] = Object.keys(parameters),
): CellNames {
  const pairs = keys.map((key) => ({ key, pair: pairsOf(parameters, keys, key, cells) }));
  const isNamed = (key: string, index: number) =>
    index === 0 || (isSwept(key, cells) && pairs[index]!.pair === null);
  const named = keys.filter(isNamed);
  const shared = keys.filter((key, index) => !isNamed(key, index) && !isSwept(key, cells));
  const said = (cell: AnyCell, key: string) => {
    const value = cell[key];
    return isPlain(value) ? [valueInWords(key, parameters[key]!, value as Json)] : [];
  };
  return {
    name: (cell) => named.flatMap((key) => said(cell, key)).join(', '),
    shared: [
      ...cellWords(parameters, cells[0] ?? {}, shared),
      ...pairs.flatMap(({ pair }) => pair ?? []),
    ].join(', '),
  };
}

/**
 * In words, which value of a peer's parameter goes with each of ours; null where one of ours has several, or where either is not
 * swept.
 */
function pairsOf(
  parameters: Parameters,
  keys: readonly string[],
  key: string,
  cells: readonly AnyCell[],
): string[] | null {
  const { beside } = parameters[key]!;
  if (beside === undefined || !keys.includes(beside) || !isSwept(beside, cells) || !isSwept(key, cells))
    return null;
  const pairs = new Map(cells.map((cell) => [cell[beside], cell[key]]));
  if (cells.some((cell) => pairs.get(cell[beside]) !== cell[key])) return null;
  return [...pairs].map(
    ([ours, theirs]) => `${String(ours)} vs ${valueInWords(key, parameters[key]!, theirs as Json)}`,
  );
}
