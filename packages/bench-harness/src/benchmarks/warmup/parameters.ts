import { z } from 'zod';
import { cellSchema } from '../../parameters/cell-schema.ts';
import { parameter } from '../../parameters/parameter.ts';
import type { ValuesOf } from '../../parameters/sweep.ts';
import { expandCells, stepParameters, stepSettings, stepSweepOf } from '../e2e/parameters.ts';

const warmup = parameter(z.int().nonnegative(), {
  title: 'Warm-up',
  description: 'Steps before those that count.',
  words: (count) => `warm-up ${count}`,
});
export const warmupCellParameters = { ...stepParameters, warmup };
export const warmupCell = cellSchema(warmupCellParameters);
export type WarmupCell = z.infer<typeof warmupCell>;

const { steps, seed } = stepSettings;
export type WarmupSettings = ValuesOf<{ steps: typeof steps; seed: typeof seed }>;

const sweep = stepSweepOf({ steps, seed }, { warmup });
/** The end-to-end sweep of ours, once for each number of steps before those that count, which is innermost. */
export const warmupSweep = {
  ...sweep,
  expand: ({ warmup: counts, ...parameters }: z.output<typeof sweep.parameters>): WarmupCell[] =>
    expandCells(parameters).flatMap((cell) => counts.map((warmup) => ({ ...cell, warmup }))),
};
