import type { Tensor } from '../../tensor/tensor.ts';
import { div } from '../elementwise/arithmetic.ts';
import { exp } from '../elementwise/math.ts';
import { sum } from '../reduce/reductions.ts';
import { softmaxNode } from './softmax-graph.ts';
import { type SoftmaxOptions, applySoftmax, softmaxOp } from './softmax-op.ts';

const op = softmaxOp({
  name: 'softmax',
  kernel: 'softmax',
  onnx: softmaxNode,
  reference: (shifted) => {
    const powers = exp(shifted);
    return div(powers, sum(powers, { dims: -1, keepDims: true }));
  },
  // dx = y · (dy - Σ dy·y)
  backward: (graph, dy, y, sum) => {
    const product = graph.node('Mul', [dy, y]);
    return graph.node('Sub', [product, graph.node('Mul', [y, sum(product)])]);
  },
});

/**
 * e^x / Σ e^x along one dimension, the last by default (1 for a scalar); low precision is calculated in float32 and rounded at
 * the end. Throws a ShapeError or DTypeError.
 */
export function softmax(x: Tensor, dimension = -1, options: SoftmaxOptions = {}): Tensor {
  return applySoftmax(op, x, dimension, options);
}
