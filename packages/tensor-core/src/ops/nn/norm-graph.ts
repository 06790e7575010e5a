import type { OnnxGraph, OnnxValue } from '../../onnx/graph.ts';
import { sumNode } from '../reduce/sum-graph.ts';

/** The mean along the last dimension, which is kept with length one. */
export function lastMean(graph: OnnxGraph, x: OnnxValue): OnnxValue {
  const sum = sumNode(graph, x, [x.shape.length - 1], true);
  return graph.node('Div', [sum, graph.scalar(x.dtype, x.shape.at(-1)!)]);
}

/** The sum over all dimensions but the last. */
export function sumToLast(graph: OnnxGraph, x: OnnxValue): OnnxValue {
  return sumNode(graph, x, [...x.shape.keys()].slice(0, -1), false);
}

/** The statistics [rows] of rows without elements, which nothing reads: ONNX Runtime's norms refuse empty rows. */
export function statisticsOfNothing(graph: OnnxGraph, { shape, dtype }: OnnxValue): OnnxValue {
  const rows = shape.slice(0, -1);
  return graph.node('Expand', [graph.scalar(dtype, NaN), graph.integers(rows)], {}, { shape: rows });
}

/** Up to so many elements in a row ONNX Runtime's norms, which add squares to one running sum, keep float32's digits. */
const longestRow = 8192;

/** Whether ONNX Runtime's own node will do, whose statistics are float32. */
export function hasNormNode({ shape, dtype }: OnnxValue): boolean {
  return dtype !== 'float64' && shape.at(-1)! <= longestRow;
}

/** The statistics [..., 1] of rows, calculated by our own sums, and the normalized rows. */
export function statisticsBySums(graph: OnnxGraph, x: OnnxValue, eps: number, centered: boolean) {
  const mean = centered ? lastMean(graph, x) : graph.scalar(x.dtype, 0);
  const difference = graph.node('Sub', [x, mean]);
  const variance = lastMean(graph, graph.node('Mul', [difference, difference]));
  const deviation = graph.node('Sqrt', [graph.node('Add', [variance, graph.scalar(x.dtype, eps)])]);
  const rstd = graph.node('Reciprocal', [deviation]);
  return { mean, rstd, normal: graph.node('Mul', [difference, rstd]) };
}
