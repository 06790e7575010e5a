import { type Tensor, checkOptions, mul } from '@roofline/tensor-core';
import { checkRank } from '../group/check-call.ts';
import { reductionOf } from '../group/collective-checks.ts';
import type { ProcessGroup } from '../group/process-group.ts';
import type { ReductionOptions } from './all-reduce.ts';
import { applyCollective, checkDifferentiable, checkInput, defineCollective } from './collective-op.ts';

const broadcastOp = defineCollective({
  name: 'broadcast',
  infer: ({ shape, dtype }) => ({ shape, dtype }),
  terms: (x, _, { root = 0 }) => ({ kind: 'broadcast', details: [`root ${root}`], root, like: x }),
  sides({ x, y }, { group, root }, memory) {
    if (group.rank !== root) return { input: null, output: y };
    // Gloo sends what lies in its output.
    memory.copy(x, y);
    return { input: y, output: y };
  },
  linkShare: (size) => Math.sign(size - 1),
  gradient: (g, { group, root }) => applyCollective(reduceOp, g, { group, root, reduction: 'sum' }),
});

const reduceOp = defineCollective({
  name: 'reduce',
  infer: ({ shape, dtype }) => ({ shape, dtype }),
  terms: (x, _, { root = 0, reduction = 'sum' }) => ({
    ...{ kind: 'reduce', reduction, root, like: x },
    details: [reduction, `root ${root}`],
  }),
  sides({ x, y }, { group, root }, memory) {
    if (group.rank === root) return { input: x, output: y };
    memory.fill(y, 0);
    return { input: x, output: null };
  },
  linkShare: (size) => Math.sign(size - 1),
  gradient(g, { group, root, reduction }) {
    const sent = applyCollective(broadcastOp, g, { group, root });
    return reduction === 'average' ? mul(sent, 1 / group.size) : sent;
  },
});

/**
 * The root's `x`, on all ranks; the others' must be like it in shape and dtype. The gradient is the sum of all ranks' gradients on
 * the root, and zero on the others. The first reader of the result waits for it. Throws a DeviceError, a DTypeError, a
 * RooflineError (code RANGE) for a root that is no rank, and a CollectiveError where the call fails, which its reader gets.
 */
export function broadcast(x: Tensor, root: number, group: ProcessGroup): Tensor {
  checkInput('broadcast', x, group);
  checkRank('broadcast', 'the root', root, group.size);
  return applyCollective(broadcastOp, x, { group, root });
}

/**
 * The reduction of all ranks' `x` on the root, and zeros on the others. The gradient, of a 'sum' or an 'average' alone, is
 * `broadcast`. Throws what `broadcast` and `allReduce` throw.
 */
export function reduce(x: Tensor, root: number, group: ProcessGroup, options: ReductionOptions = {}): Tensor {
  checkInput('reduce', x, group);
  checkRank('reduce', 'the root', root, group.size);
  checkOptions('reduce', options, ['op']);
  const reduction = reductionOf('reduce', options.op, x);
  checkDifferentiable('reduce', x, reduction);
  return applyCollective(reduceOp, x, { group, root, reduction });
}
