import type { CellContext } from '../../runner/cell-task.ts';
import { measureE2e } from '../e2e/measure.ts';
import type { E2eResult } from '../e2e/result.ts';
import type { WarmupCell, WarmupSettings } from './parameters.ts';

/** Measures a step of the end-to-end benchmark after so many others. */
export function measureWarmup(
  { warmup, ...cell }: WarmupCell,
  context: CellContext<WarmupSettings>,
): Promise<E2eResult> {
  return measureE2e(cell, { ...context, settings: { ...context.settings, warmup, peer: null } });
}
