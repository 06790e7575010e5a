import { z } from 'zod';
import { parameter, withFlag } from '../../parameters/parameter.ts';
import type { ValuesOf } from '../../parameters/sweep.ts';
import { expandCells, stepSettings, stepSweepOf, type E2eCell } from '../e2e/parameters.ts';

const { steps, seed } = stepSettings;
export const compileSettings = {
  steps: withFlag(steps, { describe: 'Steps to time, once compiled' }),
  seed,
  /** On a GPU, compile in two processes more: with no kernel compiled yet, and with all in the cache. */
  coldAndWarm: parameter(z.boolean()),
};
export type CompileSettings = ValuesOf<typeof compileSettings>;
export type CompileCell = E2eCell;

const sweep = stepSweepOf(compileSettings);
/** The steps of the end-to-end benchmark, each compiled. */
export const compileSweep = {
  ...sweep,
  expand: (parameters: Parameters<typeof expandCells>[0]) =>
    expandCells({ ...parameters, execution: ['compiled'] }),
};
