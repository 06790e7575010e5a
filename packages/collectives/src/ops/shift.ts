import type { Tensor } from '@roofline/tensor-core';
import { wrongArgument } from '@roofline/cuda/host';
import type { ProcessGroup } from '../group/process-group.ts';
import { applyCollective, checkInput, defineCollective } from './collective-op.ts';

const shiftOp = defineCollective({
  name: 'shift',
  infer: ({ shape, dtype }) => ({ shape, dtype }),
  terms: (x, _, { root = 0 }) => ({ kind: 'shift', details: [`by ${root}`], root, like: x }),
  linkShare: () => 1,
  // Back to the rank that it came from.
  gradient: (g, { group, root = 0 }) =>
    applyCollective(shiftOp, g, { group, root: (group.size - root) % group.size }),
});

/**
 * `x` to the rank `by` further in the group, counted around its end, and what comes from the rank `by` before, which has the shape of `x`
 * (JAX's `ppermute` by a rotation). All ranks call it, and send both ways at once. The gradient is the shift back. The first reader of the
 * result waits for it. Throws a DeviceError, a DTypeError, a RooflineError (code ARGUMENT) for a `by` that is no integer, and a
 * CollectiveError where the call fails, which its reader gets.
 */
export function shift(x: Tensor, by: number, group: ProcessGroup): Tensor {
  checkInput('shift', x, group);
  if (!Number.isSafeInteger(by)) throw wrongArgument('shift', 'by', 'a whole number of ranks', by);
  const { size } = group;
  return applyCollective(shiftOp, x, { group, root: ((by % size) + size) % size });
}
