import { checkFunction } from '@roofline/cuda/host';
import type { Tensor } from '../tensor/tensor.ts';
import { apply, requireComputeOp } from './apply.ts';
import type { ComputeOp } from './op.ts';

interface PerRunAttributes {
  readonly attributes: unknown;
  readonly next: () => unknown;
}

/** Those of the call under way, if it has any. */
let current: PerRunAttributes | null = null;

/**
 * Like `apply`, with attributes that the host calculates anew for each run: a learning rate, the place in a sequence of
 * random numbers. `next` is called once here, and once in each run of a compiled program, before the op, in the program's order;
 * what it counts up it counts there too. Only what needs no other kernel or graph may change (an op's `scalars`, arguments of
 * its kernel). Throws what `next` and `apply` throw.
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

/** What gives the next attributes of the op that an observer sees with `attributes`; null where they stay. */
export function perRunSourceOf(attributes: unknown): (() => unknown) | null {
  return current !== null && current.attributes === attributes ? current.next : null;
}
