import type { OnnxGraph, OnnxValue } from '../../op/cpu-lowering.ts';
import { sumNode } from '../reduce/sum-graph.ts';

/** x - log Σ e^x along the last dimension; NaN throughout a row that holds NaN or Infinity. */
export function logSoftmaxNode(graph: OnnxGraph, x: OnnxValue): OnnxValue {
  if (x.dtype !== 'float64') return graph.node('LogSoftmax', [x], { axis: -1 });
  // ONNX Runtime's own in float64 passes over NaN and takes Infinity for a finite number.
  const last = x.shape.length - 1;
  const shape = [...x.shape.slice(0, last), 1];
  const largest = graph.node('ReduceMax', [x, graph.integers([last])], { keepdims: 1 }, { shape });
  const shifted = graph.node('Sub', [x, largest]);
  const sum = sumNode(graph, graph.node('Exp', [shifted]), [last], true);
  return graph.node('Sub', [shifted, graph.node('Log', [sum])]);
}
