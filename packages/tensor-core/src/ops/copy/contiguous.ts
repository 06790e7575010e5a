import { applyOne } from '../../op/apply.ts';
import { defineOp } from '../../op/op.ts';
import type { Tensor } from '../../tensor/tensor.ts';

const copyOp = defineOp({
  name: 'copy',
  autocast: 'none',
  infer: ([x]) => [{ shape: x!.shape, dtype: x!.dtype }],
  gradient: ({ gradients }) => gradients,
  cuda: { kind: 'pointwise', expressions: () => ['a'] },
  cpu: { kind: 'onnx', build: (graph, [x]) => [graph.node('Identity', [x!])] },
});

/** The same values in row-major order in a storage of their own. */
export function copy(x: Tensor): Tensor {
  return applyOne(copyOp, [x], undefined);
}

/** `x` itself if it is contiguous, else a contiguous copy. */
export function contiguous(x: Tensor): Tensor {
  return x.isContiguous ? x : copy(x);
}
