import { z } from 'zod';
import { parameter, withFlag } from '../../parameters/parameter.ts';
import type { ValuesOf } from '../../parameters/sweep.ts';
import { stepSettings, wayWords, type E2eCell } from '../e2e/parameters.ts';

export const memorySettings = {
  warmup: withFlag(stepSettings.warmup, { default: '2', describe: 'Steps before the recorded one' }),
  steps: withFlag(stepSettings.steps, {
    ...{ default: '3', describe: 'Steps to time with recording off, and with it on' },
  }),
  seed: stepSettings.seed,
  stackDepth: parameter(z.int().nonnegative(), {
    flag: {
      default: '20',
      describe: "Calls that are kept of each allocation, tensor-core's own counted; 0 for none",
    },
  }),
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
