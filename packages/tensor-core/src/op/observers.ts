import { checkFunction, checkObject, wrongArgument } from '@roofline/cuda/host';
import type { Tensor } from '../tensor/tensor.ts';
import type { Replay } from './replay.ts';
import type { ComputeOp } from './op.ts';

/**
 * Sees what happens to tensors: profilers, memory recorders and tracers hook in here and nowhere else. Each method, except
 * `after` and `afterReplay`, is called before anything has been queued.
 *
 * While an observer has `before` or `after`, compiled functions run op by op, unfused: on the CPU always, on a GPU unless that
 * observer also has `beforeReplay`, in which case the compiled graph runs as if unobserved.
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
  /** A compiled graph is about to be launched; its ops are not reported one by one. */
  beforeReplay?(replay: Replay): void;
  /** The graph of the last `beforeReplay` has been launched, or could not be if `failed`. */
  afterReplay?(replay: Replay, failed: boolean): void;
  /** The host reads elements of a tensor, as `toTypedArray` does. */
  hostRead?(source: Tensor): void;
  /** The host is about to write all elements of a new tensor, for the function `owner`. */
  hostWrite?(target: Tensor, owner: string): void;
  /** The elements of `source` go to a tensor on another device. */
  deviceCopy?(source: Tensor, target: Tensor): void;
}

/** The current observers; exported for `apply` and transfers, which check its length first. */
export const observers: Observer[] = [];

/**
 * Reports every op, host read, host write and copy between devices to `observer`; returns a function that ends that. Throws a
 * RooflineError for an object that has only other methods.
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

/** Tells all observers, and adds each to `told` afterwards. */
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

/**
 * Tells those that `tellBefore` told and that still observe; throws the first error of one of them once all have been told.
 */
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

/** Whether an observer must see the ops of a compiled function one by one; `replays` says whether it can report replays. */
export function mustSeeOps(replays: boolean): boolean {
  return observers.some(({ before, after, beforeReplay }) => (before || after) && !(replays && beforeReplay));
}

/** Runs `launch`, reporting the replay to all observers before and after. */
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
