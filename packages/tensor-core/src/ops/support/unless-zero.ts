import type { OnnxGraph, OnnxValue } from '../../onnx/graph.ts';
import type { TensorSpec } from '../../base/memory-view.ts';

/** `value`, but 0 where `x` is 0. */
export function unlessZero(graph: OnnxGraph, x: OnnxValue, value: OnnxValue, result: TensorSpec): OnnxValue {
  const isZero = graph.node('Equal', [x, graph.scalar(x.dtype, 0)], {}, { dtype: 'bool' });
  return graph.node('Where', [isZero, graph.scalar(value.dtype, 0), value], {}, result);
}
