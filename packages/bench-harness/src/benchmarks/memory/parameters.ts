import { z } from 'zod';
import { parameter } from '../../parameters/parameter.ts';
import type { ValuesOf } from '../../parameters/sweep.ts';
import { stepSettings, wayWords, type E2eCell } from '../e2e/parameters.ts';

export const memorySettings = {
  ...stepSettings,
  /** Calls that are kept of each allocation, as `recordMemory` takes it; 0 for none. */
  stackDepth: parameter(z.int().nonnegative()),
};
export type MemorySettings = ValuesOf<typeof memorySettings>;
export type MemoryCell = E2eCell;

/** Names a cell's snapshot: `small-context256-batch4-train-step-float32.pickle`. */
export function snapshotName(cell: MemoryCell): string {
  const { size, context, batch, mode, dtype } = cell;
  const words = [size, `context${context}`, `batch${batch}`, mode, dtype, ...wayWords(cell)];
  const name = words.join('-');
  return `${name.replaceAll(/[^\w.=-]+/g, '-')}.pickle`;
}
