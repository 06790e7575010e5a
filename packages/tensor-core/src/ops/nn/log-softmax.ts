import { applyOne } from '../../op/apply.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { alongLastDimension } from '../support/along-last-dimension.ts';
import { sub } from '../elementwise/arithmetic.ts';
import { exp, log } from '../elementwise/math.ts';
import { sum } from '../reduce/reductions.ts';
import { logSoftmaxNode } from './softmax-graph.ts';
import { softmaxOp } from './softmax-op.ts';

const op = softmaxOp({
  name: 'logSoftmax',
  kernel: 'log_softmax',
  onnx: logSoftmaxNode,
  reference: (shifted) => sub(shifted, log(sum(exp(shifted), { dims: -1, keepDims: true }))),
  // dx = dy - e^y · Σ dy
  backward: (graph, dy, y, sum) =>
    graph.node('Sub', [dy, graph.node('Mul', [graph.node('Exp', [y]), sum(dy)])]),
});

/** x - log Σ e^x along one dimension, the last by default (0 for a scalar). Throws a ShapeError or DTypeError. */
export function logSoftmax(x: Tensor, dimension = -1): Tensor {
  return alongLastDimension('logSoftmax', x, dimension, (rows) => applyOne(op, [rows], undefined));
}
