import { RooflineError, checkOptions } from '@roofline/tensor-core';
import { checkNotNegative } from './optimizers/hyperparameters.ts';

/** The shape of a schedule; steps count from 0, learning rates are those of the optimizer. */
export interface CosineScheduleOptions {
  /** The learning rate at the end of the warm-up. */
  readonly maximum: number;
  /** The learning rate after `totalSteps`. Default 0. */
  readonly minimum?: number;
  /** Steps over which the learning rate rises linearly from zero. Default 0. */
  readonly warmupSteps?: number;
  /** The step at which the cosine reaches its minimum, warm-up included. */
  readonly totalSteps: number;
}

/**
 * The learning rate of each step: a linear warm-up from zero, then half a cosine down to the minimum, then the
 * minimum for good (Touvron et al. 2023, LLaMA, section 2.3). Steps count from zero.
 * Throws a RooflineError for a warm-up longer than the whole, or a minimum above the maximum (code RANGE), and for
 * options that do not exist (code OPTION).
 */
export function cosineSchedule(options: CosineScheduleOptions): (step: number) => number {
  checkOptions('cosineSchedule', options, ['maximum', 'minimum', 'warmupSteps', 'totalSteps']);
  const { maximum, minimum = 0, warmupSteps = 0, totalSteps } = options;
  checkNotNegative('cosineSchedule', { maximum, minimum, warmupSteps, totalSteps });
  if (!(0 <= warmupSteps && warmupSteps <= totalSteps)) {
    throw new RooflineError(
      'RANGE',
      `cosineSchedule: warmupSteps ${warmupSteps} must lie between 0 and totalSteps ${totalSteps}.`,
    );
  }
  if (!(0 <= minimum && minimum <= maximum)) {
    throw new RooflineError(
      'RANGE',
      `cosineSchedule: minimum ${minimum} must lie between 0 and maximum ${maximum}.`,
    );
  }
  return (step) => {
    checkNotNegative('cosineSchedule', { step });
    if (step < warmupSteps) return (step / warmupSteps) * maximum;
    if (step >= totalSteps) return minimum;
    const progress = (step - warmupSteps) / (totalSteps - warmupSteps);
    return minimum + 0.5 * (1 + Math.cos(Math.PI * progress)) * (maximum - minimum);
  };
}
