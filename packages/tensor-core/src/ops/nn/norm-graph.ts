import type { OnnxGraph, OnnxValue } from '../../op/cpu-lowering.ts';
import { sizeOf } from '../../tensor/shape.ts';

/** The mean along the last dimension, which stays with length one. */
export function lastMean(graph: OnnxGraph, x: OnnxValue): OnnxValue {
  return graph.node(
    'ReduceMean',
    [x, graph.integers([-1])],
    { keepdims: 1 },
    { shape: [...x.shape.slice(0, -1), 1] },
  );
}

/** The sum over all dimensions but the last. */
export function sumToLast(graph: OnnxGraph, x: OnnxValue): OnnxValue {
  const columns = x.shape.at(-1)!;
  const rows = graph.reshape(x, [sizeOf(x.shape) / columns, columns]);
  return graph.node('ReduceSum', [rows, graph.integers([0])], { keepdims: 0 }, { shape: [columns] });
}

/** The statistics [..., 1] of rows of float64, for which ONNX Runtime's norms would give float32. */
export function float64Statistics(graph: OnnxGraph, x: OnnxValue, eps: number, centered: boolean) {
  const mean = centered ? lastMean(graph, x) : graph.scalar(x.dtype, 0);
  const difference = graph.node('Sub', [x, mean]);
  const variance = lastMean(graph, graph.node('Mul', [difference, difference]));
  const deviation = graph.node('Sqrt', [graph.node('Add', [variance, graph.scalar(x.dtype, eps)])]);
  const rstd = graph.node('Reciprocal', [deviation]);
  return { mean, rstd, normal: graph.node('Mul', [difference, rstd]) };
}
