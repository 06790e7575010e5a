import { z } from 'zod';
import { e2eCell, e2eParameters, expandCells, type E2eCell } from '../e2e/parameters.ts';

const steps = z.int().nonnegative();

/** The end-to-end sweep, once for each number of steps before those that count. */
export const warmupParameters = e2eParameters
  .omit({ warmup: true, peer: true, peerAttentions: true, peerExecutions: true })
  .extend({ warmups: z.array(steps).min(1) });
export type WarmupParameters = z.infer<typeof warmupParameters>;

export const warmupCell = e2eCell.extend({ warmup: steps });
export type WarmupCell = z.infer<typeof warmupCell>;

export type WarmupSettings = Pick<WarmupParameters, 'steps' | 'seed'>;

/** The cells that are to be contrasted are adjacent: the numbers of warm-up steps are innermost. */
export function expandWarmups({ warmups, ...parameters }: WarmupParameters): WarmupCell[] {
  const ours = { ...parameters, warmup: 0, peer: null, peerAttentions: ['plain' as const] };
  return expandCells(ours).flatMap((cell: E2eCell) => warmups.map((warmup) => ({ ...cell, warmup })));
}
