import { type Tensor, checkOptions } from '@roofline/tensor-core';
import type { Reduction } from '../group/backend.ts';
import { reductionOf } from '../group/collective-checks.ts';
import type { ProcessGroup } from '../group/process-group.ts';
import { applyCollective, checkDifferentiable, checkInput, defineCollective } from './collective-op.ts';

/** How the ops of a group reduce. */
export interface ReductionOptions {
  /** Default 'sum'. An 'average' is the sum over the number of ranks, of floating-point tensors alone. */
  readonly op?: Reduction;
}

const allReduceOp = defineCollective({
  name: 'allReduce',
  infer: ({ shape, dtype }) => ({ shape, dtype }),
  terms: (x, _, { reduction = 'sum' }) => ({ kind: 'allReduce', reduction, details: [reduction], like: x }),
  linkShare: (size) => (2 * (size - 1)) / size,
  // Each rank's input is in all ranks' outputs.
  gradient: (g, attributes) => applyCollective(allReduceOp, g, attributes),
});

/**
 * The reduction of all ranks' `x`, on all ranks. The gradient is the same reduction of all ranks' gradients, of a 'sum' or an
 * 'average' alone. The first reader of the result waits for it. Throws a DeviceError, a DTypeError, an AutogradError for a
 * gradient of another reduction, and a CollectiveError where the call fails, which its reader gets.
 */
export function allReduce(x: Tensor, group: ProcessGroup, options: ReductionOptions = {}): Tensor {
  checkInput('allReduce', x, group);
  checkOptions('allReduce', options, ['op']);
  const reduction = reductionOf('allReduce', options.op, x);
  checkDifferentiable('allReduce', x, reduction);
  return applyCollective(allReduceOp, x, { group, reduction });
}
