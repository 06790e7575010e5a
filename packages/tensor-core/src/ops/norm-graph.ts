import type { OnnxGraph, OnnxValue } from '../cpu/onnx-graph.ts';
import { sizeOf } from '../shape.ts';

/** The mean along the last dimension, which stays with length one. */
export function lastMean(graph: OnnxGraph, x: OnnxValue): OnnxValue {
  return graph.node('ReduceMean', [x, graph.integers([-1])], { keepdims: 1 }, { shape: [...x.shape.slice(0, -1), 1] });
}

/** The sum over all dimensions but the last. */
export function sumToLast(graph: OnnxGraph, x: OnnxValue): OnnxValue {
  const columns = x.shape.at(-1)!;
  const rows = graph.reshape(x, [sizeOf(x.shape) / columns, columns]);
  return graph.node('ReduceSum', [rows, graph.integers([0])], { keepdims: 0 }, { shape: [columns] });
}
