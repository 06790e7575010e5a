import { z } from 'zod';
import { wayWords, e2eParameters, type E2eCell } from '../e2e/parameters.ts';

/** The cells are those of the end-to-end benchmark. */
export const memoryParameters = e2eParameters
  .pick({
    ...{ model: true, context: true, batch: true, mode: true, dtype: true, attention: true },
    execution: true,
    seed: true,
  })
  .extend({
    /** Steps that run before the recorded one. */
    warmup: z.int().nonnegative(),
    /** Steps that are timed with recording off, and as many with it on. */
    steps: z.int().positive(),
    /** Calls that are kept of each allocation, as `recordMemory` takes it; 0 for none. */
    stackDepth: z.int().nonnegative(),
  });
export type MemoryParameters = z.infer<typeof memoryParameters>;
export type MemoryCell = E2eCell;
export type MemorySettings = Pick<MemoryParameters, 'warmup' | 'steps' | 'seed' | 'stackDepth'>;

/** Names a cell's snapshot: `small-context256-batch4-train-step-float32.pickle`. */
export function snapshotName(cell: MemoryCell): string {
  const { size, context, batch, mode, dtype } = cell;
  const words = [size, `context${context}`, `batch${batch}`, mode, dtype, ...wayWords(cell)];
  const name = words.join('-');
  return `${name.replaceAll(/[^\w.=-]+/g, '-')}.pickle`;
}
