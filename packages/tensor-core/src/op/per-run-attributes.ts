import { checkFunction } from '@roofline/cuda/host';
import type { Tensor } from '../tensor/tensor.ts';
import { apply, requireComputeOp } from './apply.ts';
import type { ComputeOp } from './op.ts';

interface PerRunAttributes {
  readonly attributes: unknown;
  readonly next: () => unknown;
}

/** Those of the current call, if it has any. */
let current: PerRunAttributes | null = null;

/**
 * Like `apply`, with attributes that the host calculates again for each run, such as a learning rate or the place in a
 * sequence of random numbers. `next` is called once here, and once in each replay of a compiled function, before the op, in
 * the order of the calls; counters that it advances advance there, too. Only what needs no other kernel or graph may change:
 * an op's `scalars`, and arguments of its kernel. Throws what `next` and `apply` throw.
 */
export function applyLive<A>(op: ComputeOp<A>, inputs: readonly Tensor[], next: () => A): Tensor[] {
  requireComputeOp('applyLive', op);
  checkFunction('applyLive', 'next', next);
  const attributes = next();
  const outer = current;
  current = { attributes, next };
  try {
    return apply(op, inputs, attributes);
  } finally {
    current = outer;
  }
}

/** The `next` of the op that an observer sees with `attributes`; null if its attributes do not change. */
export function perRunSourceOf(attributes: unknown): (() => unknown) | null {
  return current !== null && current.attributes === attributes ? current.next : null;
}
