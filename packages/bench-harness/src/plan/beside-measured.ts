import { calibrate } from './computation.ts';
import {
  type Layout,
  dataParallel,
  fullySharded,
  hybridSharded,
  sequencesDivided,
  shardedTensor,
  tensorParallel,
  zero1,
} from './layout.ts';
import type { Links } from './links.ts';
import { interferenceOf, linkFits, type Machine, type MeasuredStep } from './machine.ts';
import { planStep, type StepPlan } from './plan-step.ts';

/** A measured step, and its prediction. */
export interface PredictedStep {
  readonly measured: MeasuredStep;
  readonly plan: StepPlan;
  /** How many other steps its computation is calibrated by; 0 where only its own is there. */
  readonly calibratedBy: number;
}

/**
 * Each measured step as predicted from the others: steps of its shape and batch calibrate nothing, and its own overlap does
 * not say how much communication slows computation. Where no other step was measured, its own computation calibrates it.
 */
export function besideMeasured(machine: Machine): PredictedStep[] {
  const inside = linkFits(machine);
  return machine.steps.flatMap((measured) => {
    if (measured.ranks > 1 && inside.length === 0) return [];
    const links: Links = { inside, perNode: measured.ranks, outsideBytesPerSecond: null };
    const others = machine.steps.filter((step) => !isSameWork(step, measured));
    const own = isCalibrated(others, measured) ? others : machine.steps;
    const calibration = calibrate(machine, measured, own);
    const interference = interferenceOf(machine.steps.filter((step) => step !== measured));
    const { reduction, reductions } = measured;
    const layout = layoutOf(measured);
    const plan = planStep(
      { machine, links, calibration, interference },
      layout,
      // Ranks that divide sequences have the same ones.
      { ...measured, batch: measured.batch / layout.context, recompute: 'none' },
      layout.replicate > 1
        ? { calls: Math.max(1, reductions), hides: !['naive', 'flat'].includes(reduction) }
        : undefined,
    );
    return [{ measured, plan, calibratedBy: own === others ? calibration.steps : 0 }];
  });
}

function layoutOf({ ranks, reduction, optimizer }: MeasuredStep): Layout {
  if (reduction === 'fsdp') return fullySharded(ranks);
  if (reduction === 'hybrid') return hybridSharded(2, ranks / 2);
  if (reduction === 'tensor') return tensorParallel(ranks);
  if (reduction === 'fsdp-tensor') return shardedTensor(ranks / 2, 2);
  if (reduction === 'fsdp-context') return sequencesDivided(ranks);
  return optimizer === 'sharded' ? zero1(ranks) : dataParallel(ranks);
}

function isSameWork(a: MeasuredStep, b: MeasuredStep): boolean {
  return a.size === b.size && a.context === b.context && a.batch === b.batch;
}

function isCalibrated(
  steps: readonly MeasuredStep[],
  { dtype, attention, execution, sharing }: MeasuredStep,
): boolean {
  return steps.some(
    (step) =>
      step.dtype === dtype &&
      step.attention === attention &&
      step.execution === execution &&
      step.sharing === sharing &&
      step.computationMs !== null,
  );
}
