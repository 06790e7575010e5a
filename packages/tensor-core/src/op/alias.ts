import { refuseMore, requireTensor } from './require-tensor.ts';
import { Tensor } from '../tensor/tensor.ts';
import { applyView } from './apply.ts';
import { isGradEnabled } from '../tensor/tape/grad-mode.ts';
import { type ViewOp, defineView } from './op.ts';

const aliasView: ViewOp<undefined> = defineView<undefined>({
  name: 'alias',
  autocast: 'none',
  layout: (input) => input,
  gradient: ({ gradients }) => gradients,
});

/**
 * Another handle to the same elements, with the same history. Functions whose result would be their input return it, so that
 * disposing of one never disposes of the other.
 */
export function alias(x: Tensor, ...rest: []): Tensor {
  requireTensor('alias', x);
  refuseMore('alias', rest);
  const { node } = x;
  if (node === null || !isGradEnabled()) return applyView(aliasView, x, undefined);
  x.assertAlive('alias');
  const handle = new Tensor(x.storage.retain(), x.dtype, x.shape, x.strides, x.offset);
  handle.setHistory(node, x.outputIndex);
  return handle;
}
