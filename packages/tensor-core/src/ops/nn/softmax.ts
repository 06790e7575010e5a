import { checkFlag, checkOptions } from '@roofline/cuda/host';
import { ShapeError } from '../../base/errors.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { div } from '../elementwise/arithmetic.ts';
import { exp } from '../elementwise/math.ts';
import { sum } from '../reduce/reductions.ts';
import { softmaxNode } from './softmax-graph.ts';
import { type SoftmaxDefinition, type SoftmaxOptions, applySoftmax, softmaxOp } from './softmax-op.ts';
import { dimensionOf } from '../support/one-dimension.ts';

const definition = {
  onnx: softmaxNode,
  reference: (shifted: Tensor) => {
    const powers = exp(shifted);
    return div(powers, sum(powers, { dims: -1, keepDims: true }));
  },
  // dx = y · (dy - Σ dy·y)
  backward: (graph, dy, y, sum) => {
    const product = graph.node('Mul', [dy, y]);
    return graph.node('Sub', [product, graph.node('Mul', [y, sum(product)])]);
  },
} satisfies Partial<SoftmaxDefinition>;

const op = softmaxOp({ name: 'softmax', kernel: 'softmax', ...definition });
const causalOp = softmaxOp({
  ...{ name: 'causalSoftmax', kernel: 'causal_softmax', isCausal: true },
  ...definition,
});

/**
 * e^x / Σ e^x along one dimension, the last by default (1 for a scalar); low precision is calculated in float32 and rounded at
 * the end. Throws a ShapeError or DTypeError.
 */
export function softmax(x: Tensor, dimension = -1, options: SoftmaxOptions = {}): Tensor {
  checkOptions('softmax', options, ['dtype', 'causal']);
  const { causal = false } = options;
  checkFlag('softmax', 'causal', causal);
  if (causal && dimensionOf('softmax', x, dimension) !== x.rank - 1)
    throw new ShapeError(`softmax: causal rows lie along the last dimension, not along ${dimension}.`);
  return applySoftmax(causal ? causalOp : op, x, dimension, options);
}
