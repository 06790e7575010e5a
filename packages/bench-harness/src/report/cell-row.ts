import type { Row } from '@roofline/reports';
import type { E2eCell } from '../benchmarks/e2e/parameters.ts';
import type { CellRecord } from '../records/record.ts';

/** How a cell ended, and with what error if it failed. */
export function outcomeOf({ status, error }: CellRecord): Row {
  return { status, ...(error ? { error: error.message } : {}) };
}

/** What every row of a model's cell begins with, measured or not. */
export function cellRow(cell: E2eCell, record: CellRecord): Row {
  const { shape: _, ...plain } = cell;
  return { ...plain, ...outcomeOf(record) };
}

/** The parameters of a cell that are plain values; nested ones repeat what a name says. */
export function plainParameters({ parameters }: CellRecord): Row {
  const plain = Object.entries(parameters).flatMap(([name, value]) =>
    value === null || typeof value === 'object' ? [] : [[name, plainValue(value)] as const],
  );
  return Object.fromEntries(plain);
}

function plainValue(value: boolean | number | string): number | string {
  return typeof value === 'boolean' ? String(value) : value;
}
