import { type Tensor, empty } from '@roofline/tensor-core';
import { checkPeer } from '../group/check-call.ts';
import type { ProcessGroup } from '../group/process-group.ts';
import { applyCollective, checkInput, defineCollective } from './collective-op.ts';

const sendOp = defineCollective({
  name: 'send',
  infer: ({ dtype }) => ({ shape: [], dtype }),
  terms: (x, _, { root = 0 }) => ({ kind: 'send', root, like: x }),
  sides({ x, y }, _, memory) {
    memory.fill(y, 0);
    return { input: x, output: null };
  },
  linkShare: () => 1,
  gradient(g, attributes, { shape, dtype }) {
    const like = empty(shape, { dtype, device: g.device });
    return applyCollective(receiveOp, like, attributes);
  },
});

const receiveOp = defineCollective({
  name: 'receive',
  infer: ({ shape, dtype }) => ({ shape, dtype }),
  terms: (x, _, { root = 0 }) => ({ kind: 'recv', root, like: x }),
  sides: ({ y }) => ({ input: null, output: y }),
  linkShare: () => 1,
  gradient(g, attributes) {
    applyCollective(sendOp, g, attributes);
    return null;
  },
});

/**
 * Sends `x` to one rank, which must `receive` it. The result is a scalar zero: where backward passes are to bring the gradient of
 * `x`, which then comes from that rank, add it to the loss. NCCL runs sends and receives in the order of all calls, so ranks that
 * send to each other take `shift` or `allToAll`. Throws a DeviceError, a DTypeError, a RooflineError (code RANGE) for a peer that is
 * no rank of the group, and a CollectiveError where that is this rank.
 */
export function send(x: Tensor, to: number, group: ProcessGroup): Tensor {
  checkInput('send', x, group);
  checkPeer('send', to, group);
  return applyCollective(sendOp, x, { group, root: to });
}

/**
 * What `from` sends: a tensor of the shape, the dtype and the device of `like`, whose elements do not matter. Where `like` requires a
 * gradient, backward passes send the result's gradient to `from`, and `like` gets none. The first reader of the result waits for
 * it. Throws what `send` throws, and a CollectiveError where the call fails, which its reader gets.
 */
export function receive(like: Tensor, from: number, group: ProcessGroup): Tensor {
  checkInput('receive', like, group);
  checkPeer('receive', from, group);
  return applyCollective(receiveOp, like, { group, root: from });
}
