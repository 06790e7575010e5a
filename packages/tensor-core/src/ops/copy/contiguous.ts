import { refuseMore, requireTensor } from '../../op/require-tensor.ts';
import { alias } from '../../op/alias.ts';
import { applyOne } from '../../op/apply.ts';
import { defineOp } from '../../op/op.ts';
import type { Tensor } from '../../tensor/tensor.ts';

export const copyOp = defineOp({
  name: 'copy',
  autocast: 'none',
  infer: ([x]) => [{ shape: x!.shape, dtype: x!.dtype }],
  gradient: ({ gradients }) => gradients,
  cuda: { kind: 'pointwise', expressions: () => ['a'] },
  cpu: { kind: 'onnx', build: (graph, [x]) => [graph.node('Identity', [x!])] },
});

/** The same values in row-major order in a storage of their own. */
export function copy(x: Tensor, ...rest: []): Tensor {
  refuseMore('copy', rest);
  return applyOne(copyOp, [x], undefined);
}

/** The same values in row-major order: in the same storage if `x` is contiguous, otherwise in a copy. */
export function contiguous(x: Tensor, ...rest: []): Tensor {
  requireTensor('contiguous', x);
  refuseMore('contiguous', rest);
  return x.isContiguous ? alias(x) : copy(x);
}
