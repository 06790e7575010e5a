import { checkOptions } from '@roofline/cuda/host';
import type { Tensor } from '../../tensor/tensor.ts';
import { sub } from '../elementwise/arithmetic.ts';
import { exp, log } from '../elementwise/math.ts';
import { sum } from '../reduce/reductions.ts';
import { logSoftmaxNode } from './softmax-graph.ts';
import { type SoftmaxOptions, applySoftmax, softmaxOp } from './softmax-op.ts';

const op = softmaxOp({
  name: 'logSoftmax',
  kernel: 'log_softmax',
  onnx: logSoftmaxNode,
  reference: (shifted) => sub(shifted, log(sum(exp(shifted), { dims: -1, keepDims: true }))),
  // dx = dy - e^y · Σ dy
  backward: (graph, dy, y, sum) =>
    graph.node('Sub', [dy, graph.node('Mul', [graph.node('Exp', [y]), sum(dy)])]),
});

/**
 * x - log Σ e^x along one dimension, the last by default (0 for a scalar); low precision is calculated in float32 and
 * rounded at the end. Throws a ShapeError or DTypeError.
 */
export function logSoftmax(x: Tensor, dimension = -1, options: Pick<SoftmaxOptions, 'dtype'> = {}): Tensor {
  checkOptions('logSoftmax', options, ['dtype']);
  return applySoftmax(op, x, dimension, options);
}
