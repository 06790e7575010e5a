import { z } from 'zod';
import { cellSchema } from '../../parameters/cell-schema.ts';
import { parameter } from '../../parameters/parameter.ts';
import { e2eParameters, expandCells, stepParameters } from '../e2e/parameters.ts';

const steps = z.int().nonnegative();

/** The end-to-end sweep, once for each number of steps before those that count. */
export const warmupParameters = e2eParameters
  .omit({ peer: true, peerAttention: true, peerExecution: true })
  .extend({ warmup: z.array(steps).min(1) });
export type WarmupParameters = z.infer<typeof warmupParameters>;

export const warmupCellParameters = {
  ...stepParameters,
  warmup: parameter(steps, {
    title: 'Warm-up',
    description: 'Steps before those that count.',
    words: (count) => `warm-up ${count}`,
  }),
};
export const warmupCell = cellSchema(warmupCellParameters);
export type WarmupCell = z.infer<typeof warmupCell>;

export type WarmupSettings = Pick<WarmupParameters, 'steps' | 'seed'>;

/** The cells that are to be contrasted are adjacent: the numbers of warm-up steps are innermost. */
export function expandWarmups({ warmup: counts, ...parameters }: WarmupParameters): WarmupCell[] {
  return expandCells(parameters).flatMap((cell) => counts.map((warmup) => ({ ...cell, warmup })));
}
