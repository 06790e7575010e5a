import { z } from 'zod';
import { e2eParameters, expandCells, type E2eCell } from '../e2e/parameters.ts';

/** The steps of the end-to-end benchmark, each compiled. */
export const compileParameters = e2eParameters
  .pick({
    ...{ model: true, context: true, batch: true, mode: true, dtype: true, attention: true },
    ...{ steps: true, seed: true },
  })
  .extend({
    /** On a GPU, compile in two processes more: with no kernel compiled yet, and with all in the cache. */
    coldAndWarm: z.boolean(),
  });
export type CompileParameters = z.infer<typeof compileParameters>;
export type CompileSettings = Pick<CompileParameters, 'steps' | 'seed' | 'coldAndWarm'>;

export type CompileCell = E2eCell;

export function expandCompileCells(parameters: CompileParameters): CompileCell[] {
  return expandCells({ ...parameters, execution: ['compiled'] });
}
