import { RooflineError, checkOptions, checkObject, describeValue } from '@roofline/tensor-core';
import { checkNotNegative } from './optimizers/hyperparameters.ts';

/**
 * The learning rate of each step, counted from 0, and the options that it was made of: `scheduleOf(description)` is the same
 * schedule again, so that a checkpoint can hold it as JSON.
 */
export interface Schedule {
  (step: number): number;
  readonly description: ScheduleDescription;
}

/** A schedule as JSON holds it. */
export type ScheduleDescription =
  | ({ readonly kind: 'cosine' } & CosineScheduleOptions)
  | ({ readonly kind: 'linear' } & LinearScheduleOptions)
  | ({ readonly kind: 'wsd' } & WsdScheduleOptions)
  | ({ readonly kind: 'constant' } & ConstantScheduleOptions);

/** The shape of a schedule; steps count from 0, learning rates are those of the optimizer. */
export interface ConstantScheduleOptions {
  /** The learning rate at the end of the warm-up. */
  readonly maximum: number;
  /** Steps over which the learning rate rises linearly from zero. Default 0. */
  readonly warmupSteps?: number;
}

/** The same for a schedule that falls. */
export interface CosineScheduleOptions extends ConstantScheduleOptions {
  /** The learning rate after `totalSteps`. Default 0. */
  readonly minimum?: number;
  /** The step at which the learning rate reaches its minimum, warm-up included. */
  readonly totalSteps: number;
}

/** The same for a straight line. */
export type LinearScheduleOptions = CosineScheduleOptions;

/** The same for a schedule that falls only at its end. */
export interface WsdScheduleOptions extends CosineScheduleOptions {
  /** Steps over which the learning rate falls, the last of `totalSteps`. Default a fifth of `totalSteps`, rounded down. */
  readonly decaySteps?: number;
}

/**
 * A linear warm-up from zero, then half a cosine down to the minimum, then the minimum for good (Touvron et al. 2023, LLaMA,
 * section 2.3). Throws a RooflineError for a warm-up longer than the whole, or a minimum above the maximum (code RANGE), and
 * for options that do not exist (code OPTION).
 */
export function cosineSchedule(options: CosineScheduleOptions): Schedule {
  return falling('cosine', options, (progress) => 0.5 * (1 + Math.cos(Math.PI * progress)));
}

/** The same with a straight line in place of the cosine (Devlin et al. 2019, BERT). Throws what `cosineSchedule` throws. */
export function linearSchedule(options: LinearScheduleOptions): Schedule {
  return falling('linear', options, (progress) => 1 - progress);
}

/**
 * A linear warm-up from zero, the maximum until the decay, then a straight line down to the minimum (warmup, stable, decay:
 * Hu et al. 2024, MiniCPM, section 4). Until the decay begins it does not depend on `totalSteps`, so a training can be made
 * longer by a schedule of more steps. Throws what `cosineSchedule` throws, and a RooflineError (code RANGE) for a warm-up and a
 * decay that together are longer than the whole.
 */
export function wsdSchedule(options: WsdScheduleOptions): Schedule {
  checkOptions('wsdSchedule', options, [...fallingNames, 'decaySteps']);
  const { maximum, minimum = 0, warmupSteps = 0, totalSteps } = checked('wsdSchedule', options);
  const { decaySteps = Math.floor(totalSteps / 5) } = options;
  checkNotNegative('wsdSchedule', { decaySteps });
  if (warmupSteps + decaySteps > totalSteps) {
    throw new RooflineError(
      'RANGE',
      `wsdSchedule: warmupSteps ${warmupSteps} and decaySteps ${decaySteps} are more than totalSteps ${totalSteps}.`,
    );
  }
  const atStep = (step: number) => {
    if (step >= totalSteps) return minimum;
    const left = Math.min(1, (totalSteps - step) / decaySteps);
    return minimum + left * (maximum - minimum);
  };
  return schedule({ ...options, kind: 'wsd', decaySteps }, atStep);
}

/** A linear warm-up from zero, then the maximum for good. Throws what `cosineSchedule` throws. */
export function constantSchedule(options: ConstantScheduleOptions): Schedule {
  checkOptions('constantSchedule', options, ['maximum', 'warmupSteps']);
  const { maximum, warmupSteps = 0 } = options;
  checkNotNegative('constantSchedule', { maximum, warmupSteps });
  return schedule({ ...options, kind: 'constant' }, () => maximum);
}

const schedules = {
  cosine: cosineSchedule,
  linear: linearSchedule,
  wsd: wsdSchedule,
  constant: constantSchedule,
} as const;

/** The kinds of schedules, as descriptions name them. */
export const scheduleKinds = Object.keys(schedules) as ScheduleDescription['kind'][];

/**
 * The schedule of a description, as a checkpoint holds it. Throws a RooflineError (code OPTION) for a kind that does not exist, and
 * what the kind's own function throws.
 */
export function scheduleOf(description: ScheduleDescription): Schedule {
  checkObject('scheduleOf', 'the description', description);
  const { kind, ...options } = description;
  if (!scheduleKinds.includes(kind)) {
    throw new RooflineError(
      'OPTION',
      `scheduleOf: kind must be one of ${scheduleKinds.join(', ')}, not ${describeValue(kind)}.`,
    );
  }
  return schedules[kind](options as WsdScheduleOptions);
}

const fallingNames = ['maximum', 'minimum', 'warmupSteps', 'totalSteps'];

/** A schedule that goes from the maximum to the minimum as `share` goes from 1 to 0. */
function falling(
  kind: 'cosine' | 'linear',
  options: CosineScheduleOptions,
  share: (progress: number) => number,
): Schedule {
  checkOptions(`${kind}Schedule`, options, fallingNames);
  const { maximum, minimum = 0, warmupSteps = 0, totalSteps } = checked(`${kind}Schedule`, options);
  return schedule({ ...options, kind }, (step) => {
    if (step >= totalSteps) return minimum;
    return minimum + share((step - warmupSteps) / (totalSteps - warmupSteps)) * (maximum - minimum);
  });
}

/** What comes after the warm-up is `afterWarmup`'s. */
function schedule(description: ScheduleDescription, afterWarmup: (step: number) => number): Schedule {
  const { kind, maximum, warmupSteps = 0 } = description;
  const rate = (step: number) => {
    checkNotNegative(`${kind}Schedule`, { step });
    return step < warmupSteps ? (step / warmupSteps) * maximum : afterWarmup(step);
  };
  return Object.assign(rate, { description: Object.freeze({ ...description }) });
}

function checked(owner: string, options: CosineScheduleOptions): CosineScheduleOptions {
  const { maximum, minimum = 0, warmupSteps = 0, totalSteps } = options;
  checkNotNegative(owner, { maximum, minimum, warmupSteps, totalSteps });
  if (!(0 <= warmupSteps && warmupSteps <= totalSteps)) {
    throw new RooflineError(
      'RANGE',
      `${owner}: warmupSteps ${warmupSteps} must lie between 0 and totalSteps ${totalSteps}.`,
    );
  }
  if (!(0 <= minimum && minimum <= maximum)) {
    throw new RooflineError(
      'RANGE',
      `${owner}: minimum ${minimum} must lie between 0 and maximum ${maximum}.`,
    );
  }
  return options;
}
