import { type Tensor, sizeOf } from '@roofline/tensor-core';
import type { ProcessGroup } from '../group/process-group.ts';
import { applyCollective, checkInput, defineCollective } from './collective-op.ts';
import { checkPieces } from './gather-scatter.ts';

const allToAllOp = defineCollective({
  name: 'allToAll',
  infer: ({ shape, dtype }) => ({ shape, dtype }),
  terms: (x, _, { group }) => ({ kind: 'allToAll', like: x, count: sizeOf(x.shape) / group.size }),
  linkShare: (size) => (size - 1) / size,
  // What went from one rank to another comes back.
  gradient: (g, attributes) => applyCollective(allToAllOp, g, attributes),
});

/**
 * Piece i of `x`, along its first dimension, to rank i; what comes from rank i is piece i of the result, which has the same shape.
 * The gradient is `allToAll`. The first reader of the result waits for it. Throws a ShapeError where there is no equal piece for
 * each rank, a DeviceError, a DTypeError, and a CollectiveError where the call fails, which its reader gets.
 */
export function allToAll(x: Tensor, group: ProcessGroup): Tensor {
  checkInput('allToAll', x, group);
  checkPieces('allToAll', x.shape, group.size);
  return applyCollective(allToAllOp, x, { group });
}
