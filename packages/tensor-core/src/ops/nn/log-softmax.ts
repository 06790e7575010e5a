import { applyOne } from '../../op/apply.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { alongLastDimension } from '../support/along-last-dimension.ts';
import { softmaxOp } from './softmax-op.ts';

const op = softmaxOp({
  name: 'logSoftmax',
  kernel: 'log_softmax',
  onnx: 'LogSoftmax',
  // dx = dy - e^y · Σ dy
  backward: (graph, dy, y, sum) =>
    graph.node('Sub', [dy, graph.node('Mul', [graph.node('Exp', [y]), sum(dy)])]),
});

/** x - log Σ e^x along one dimension, the last by default. Throws a ShapeError or DTypeError. */
export function logSoftmax(x: Tensor, dimension = -1): Tensor {
  return alongLastDimension('logSoftmax', x, dimension, (rows) => applyOne(op, [rows], undefined));
}
