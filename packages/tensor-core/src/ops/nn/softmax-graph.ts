import type { OnnxGraph, OnnxValue } from '../../onnx/graph.ts';
import { sumNode } from '../reduce/sum-graph.ts';

// In float64 ONNX Runtime's own nodes add long rows one element at a time, ignore NaN and take Infinity for a finite number.

/** e^x / Σ e^x along the last dimension; all NaN for a row that contains NaN or Infinity. */
export function softmaxNode(graph: OnnxGraph, x: OnnxValue): OnnxValue {
  if (x.dtype !== 'float64') return graph.node('Softmax', [x], { axis: -1 });
  const powers = graph.node('Exp', [shiftedNode(graph, x)]);
  return graph.node('Div', [powers, rowSum(graph, powers)]);
}

/** x - log Σ e^x along the last dimension; all NaN for a row that contains NaN or Infinity. */
export function logSoftmaxNode(graph: OnnxGraph, x: OnnxValue): OnnxValue {
  if (x.dtype !== 'float64') return graph.node('LogSoftmax', [x], { axis: -1 });
  const shifted = shiftedNode(graph, x);
  return graph.node('Sub', [shifted, graph.node('Log', [rowSum(graph, graph.node('Exp', [shifted]))])]);
}

/** x minus the largest element of its row. */
function shiftedNode(graph: OnnxGraph, x: OnnxValue): OnnxValue {
  const last = x.shape.length - 1;
  const shape = [...x.shape.slice(0, last), 1];
  return graph.node('Sub', [
    x,
    graph.node('ReduceMax', [x, graph.integers([last])], { keepdims: 1 }, { shape }),
  ]);
}

function rowSum(graph: OnnxGraph, x: OnnxValue): OnnxValue {
  return sumNode(graph, x, [x.shape.length - 1], true);
}
