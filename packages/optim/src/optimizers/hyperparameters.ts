import { checkNumber, dependOn } from '@roofline/tensor-core';
import { refuseReplays } from '../refuse-replays.ts';

/** AdamW's hyperparameters, of all parameters or of a group. */
export interface AdamWOptions {
  learningRate: number;
  /** How much of the first and second moments a step keeps. */
  betas: readonly [number, number];
  /** Added to the root of the second moment. */
  eps: number;
  /** The share of a parameter that a step takes away, times the learning rate. */
  weightDecay: number;
}

/** SGD's hyperparameters, of all parameters or of a group. */
export interface SGDOptions {
  learningRate: number;
  /** How much of the running direction a step keeps; 0 keeps none and needs no memory. */
  momentum: number;
  /** Added to the gradient, times the parameter. */
  weightDecay: number;
  /** Look ahead along the momentum (Nesterov 1983). */
  nesterov: boolean;
}

/** Throws a RooflineError (code RANGE) unless all are finite numbers of zero or more. */
export function checkNotNegative(owner: string, hyperparameters: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(hyperparameters)) {
    checkNumber(owner, name, value, 'a finite number of zero or more', isNotNegative);
  }
}

function isNotNegative(value: number): boolean {
  return value >= 0 && value < Infinity;
}

/** Options without those that are undefined, which JavaScript treats as absent: the defaults take their place. */
export function withoutUndefined<T extends object>(options: T): T {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as T;
}

/**
 * A view of a group whose hyperparameters a compiled function cannot set; one that reads some has a program for each of their
 * values.
 */
export function settableBetweenSteps<G extends object>(group: G): G {
  return new Proxy(group, {
    get: (target, name): unknown => dependOn(() => Reflect.get(target, name)),
    set: (target, name, value) => {
      refuseReplays(`${String(name)} of a group is set`);
      return Reflect.set(target, name, value);
    },
  });
}
