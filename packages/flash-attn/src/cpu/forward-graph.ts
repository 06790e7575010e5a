import type { OnnxGraph, OnnxValue } from '@roofline/tensor-core';
import type { AttentionSizes } from '../operands.ts';
import type { AttentionSettings } from '../options.ts';
import { AttentionGraph } from './attention-graph.ts';

/** What the forward pass gives: [batch, heads, queries, d], and twice [batch, heads, queries]. */
interface ForwardValues {
  readonly output: OnnxValue;
  readonly lse: OnnxValue;
  /** What rounding took from lse. */
  readonly residue: OnnxValue;
}

/** FlashAttention's forward pass in blocks of queries. */
export function buildForward(
  graph: OnnxGraph,
  [q, k, v]: readonly OnnxValue[],
  sizes: AttentionSizes,
  settings: AttentionSettings,
): ForwardValues {
  const a = new AttentionGraph(graph, sizes, settings);
  const { batch, heads, queries, keys, headDimension } = sizes;
  const [outputShape, lseShape] = [
    [batch, heads, queries, headDimension],
    [batch, heads, queries],
  ];
  if (batch * heads * queries === 0 || keys === 0) {
    return {
      output: a.zeros(outputShape, q!),
      lse: a.zeros(lseShape, q!, -Infinity),
      residue: a.zeros(lseShape, q!),
    };
  }
  const groupedQ = a.scaled(a.grouped(q!, headDimension));
  const [transposedK, sharedV] = [a.transpose(a.shared(k!)), a.shared(v!)];
  const blocks = a.blocks(queries, keys).map((block) => {
    const own = a.slice(groupedQ, block);
    const seen = a.seenBy(block);
    if (seen.end === 0) {
      const column = [...own.shape.slice(0, -1), 1];
      return [a.zeros(own.shape, own), a.zeros(column, own, -Infinity), a.zeros(column, own)];
    }
    const products = a.product(own, a.slice(transposedK, seen, 4));
    const scores = a.masked(products, block, seen);
    const largest = a.finite(a.reduce('ReduceMax', scores));
    const weights = graph.node('Exp', [graph.node('Sub', [scores, largest])]);
    const sums = a.reduce('ReduceSum', weights);
    // The largest weight of a row is 1, so its sum is less only where it is 0: where no key is seen.
    const divisor = graph.node('Max', [sums, graph.scalar(sums.dtype, 1)]);
    const lse = graph.node('Add', [largest, graph.node('Log', [sums])]);
    const rounding = graph.node('Sub', [largest, a.finite(lse)]);
    const output = graph.node('Div', [a.product(weights, a.slice(sharedV, seen)), divisor]);
    return [output, lse, graph.node('Add', [rounding, graph.node('Log', [divisor])])];
  });
  const [output, lse, residue] = a.join(blocks);
  return {
    output: graph.reshape(output!, outputShape),
    lse: graph.reshape(lse!, lseShape),
    residue: graph.reshape(residue!, lseShape),
  };
}
