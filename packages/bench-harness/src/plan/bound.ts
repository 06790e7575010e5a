import { obstacleOf, ranksOf, resized, type Layout } from './layout.ts';
import { planStep, type Planner, type StepPlan } from './plan-step.ts';
import type { StepSetting } from './setting.ts';

/** How far plans go on paper. */
export const MOST_GPUS = 16_384;

/** What stays the same as devices are added: the sequences of each of them, or those of the step. */
export type Scaling = 'batch of each' | 'batch of all';

/** The step of a layout grown or shrunk to `gpus`; null where it cannot be divided so. */
export function planAt(
  planner: Planner,
  layout: Layout,
  setting: StepSetting,
  gpus: number,
  scaling: Scaling,
): StepPlan | null {
  const grown = resized(layout, gpus);
  if (grown === null || obstacleOf(grown, setting) !== null) return null;
  const batch = scaling === 'batch of each' ? setting.batch : (setting.batch * ranksOf(layout)) / gpus;
  return planStep(planner, grown, { ...setting, batch });
}

/** 1, 2, 4 ... up to the most, and the number asked for. */
export function gpuCounts(asked: number): number[] {
  const powers = Array.from({ length: Math.log2(MOST_GPUS) + 1 }, (_, i) => 2 ** i);
  return [...new Set([...powers, asked])].sort((a, b) => a - b);
}

/** The most devices, of powers of two and as many as asked for, whose communication takes no longer than forward and backward; null for none. */
export function mostGpus(
  planner: Planner,
  layout: Layout,
  setting: StepSetting,
  scaling: Scaling,
): number | null {
  const bound = gpuCounts(ranksOf(layout)).filter(
    (gpus) => planAt(planner, layout, setting, gpus, scaling)?.isBoundByComputation,
  );
  return bound.at(-1) ?? null;
}

/**
 * The fewest tokens for each device with which forward and backward take as long as the communication; null where no number
 * does, since what is sent grows as fast as what is calculated, or nothing is sent.
 */
export function leastTokens(planner: Planner, layout: Layout, setting: StepSetting): number | null {
  const excess = (batch: number) => {
    const { computation, communicationMs } = planStep(planner, layout, { ...setting, batch });
    return computation.forwardMs + computation.backwardMs - communicationMs;
  };
  let [low, high] = [0, 2 ** 20];
  if (excess(low) >= 0 || excess(high) < 0) return null;
  for (let i = 0; i < 60; i++) {
    const middle = (low + high) / 2;
    if (excess(middle) < 0) low = middle;
    else high = middle;
  }
  return Math.ceil(high * setting.context);
}
