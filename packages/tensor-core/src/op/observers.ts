import { checkFunction, checkObject, wrongArgument } from '../base/check-value.ts';
import type { Tensor } from '../tensor/tensor.ts';
import type { Replay } from './replay.ts';
import type { ComputeOp } from './op.ts';

/**
 * Sees what happens to tensors: profilers, memory recorders and tracers hook in here and nowhere else. Each method is
 * called while nothing has been queued yet, but `after` and `afterReplay`.
 *
 * Compiled functions run op by op, unfused, while somebody observes who has `before` or `after`: on the CPU always, on
 * a GPU unless that observer has `beforeReplay` too. Then the program runs as it does unobserved.
 */
export interface Observer {
  /** An op is about to run. Outputs are allocated; where it mutates they are inputs. */
  before?(
    op: ComputeOp<never>,
    inputs: readonly Tensor[],
    outputs: readonly Tensor[],
    attributes: unknown,
  ): void;
  /** The op of the last `before` has run, or has thrown if `failed`. */
  after?(op: ComputeOp<never>, failed: boolean): void;
  /** A program is about to be launched as one graph; its ops are not told of one by one. */
  beforeReplay?(replay: Replay): void;
  /** The program of the last `beforeReplay` has been launched, or could not be if `failed`. */
  afterReplay?(replay: Replay, failed: boolean): void;
  /** The host reads elements of a tensor, as `toTypedArray` does. */
  hostRead?(source: Tensor): void;
  /** The host is about to write all elements of a new tensor, for the function `owner`. */
  hostWrite?(target: Tensor, owner: string): void;
  /** The elements of `source` go to a tensor on another device. */
  deviceCopy?(source: Tensor, target: Tensor): void;
}

/** Those that observe now; for `apply` and the transfers, which look at its length first. */
export const observers: Observer[] = [];

/**
 * Tells `observer` of every op, host read, host write and copy between devices; returns a function that ends that.
 * Throws a RooflineError for an object of other methods alone.
 */
export function observeOps(observer: Observer): () => void {
  checkObserver(observer);
  observers.push(observer);
  let isTold = true;
  return () => {
    if (isTold) observers.splice(observers.indexOf(observer), 1);
    isTold = false;
  };
}

const methods = [
  'before',
  'after',
  'beforeReplay',
  'afterReplay',
  'hostRead',
  'hostWrite',
  'deviceCopy',
] as const;

function checkObserver(observer: Observer): void {
  checkObject('observeOps', 'the observer', observer);
  const given = methods.filter((method) => observer[method] !== undefined);
  for (const method of given) checkFunction('observeOps', `the observer's ${method}`, observer[method]);
  if (given.length === 0 && Object.keys(observer).length > 0) {
    throw wrongArgument(
      'observeOps',
      'the observer',
      `an object with one of ${methods.join(', ')}`,
      observer,
    );
  }
}

/** Tells all that observe, and adds each to `told` once it has been. */
export function tellBefore(
  told: Observer[],
  op: ComputeOp<never>,
  inputs: readonly Tensor[],
  outputs: readonly Tensor[],
  attributes: unknown,
): void {
  for (const observer of [...observers]) {
    observer.before?.(op, inputs, outputs, attributes);
    told.push(observer);
  }
}

/** Tells those that `tellBefore` told and that observe still; throws what one of them threw once all have been. */
export function tellAfter(told: readonly Observer[], op: ComputeOp<never>, failed: boolean): void {
  tellEach(told, (observer) => observer.after?.(op, failed));
}

function tellEach(told: readonly Observer[], tell: (observer: Observer) => void): void {
  const errors: unknown[] = [];
  for (const observer of told) {
    try {
      if (observers.includes(observer)) tell(observer);
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}

/** Whether somebody observes who has to see the ops of a program one by one; `replays` if its replays can be told of. */
export function mustSeeOps(replays: boolean): boolean {
  return observers.some(({ before, after, beforeReplay }) => (before || after) && !(replays && beforeReplay));
}

/** Runs `launch` between telling all that observe that a program is launched and that it has been. */
export function observeReplay(replay: () => Replay, launch: () => void): void {
  if (observers.length === 0) return launch();
  const described = replay();
  const told: Observer[] = [];
  let failed = true;
  try {
    for (const observer of [...observers]) {
      observer.beforeReplay?.(described);
      told.push(observer);
    }
    launch();
    failed = false;
  } finally {
    tellEach(told, (observer) => observer.afterReplay?.(described, failed));
  }
}

export function tellHostRead(source: Tensor): void {
  for (const observer of [...observers]) observer.hostRead?.(source);
}

export function tellHostWrite(target: Tensor, owner: string): void {
  for (const observer of [...observers]) observer.hostWrite?.(target, owner);
}

export function tellDeviceCopy(source: Tensor, target: Tensor): void {
  for (const observer of [...observers]) observer.deviceCopy?.(source, target);
}
