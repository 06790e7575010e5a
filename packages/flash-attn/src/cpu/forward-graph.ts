import type { OnnxGraph, OnnxValue } from '@roofline/tensor-core';
import type { AttentionSizes } from '../operands.ts';
import type { AttentionSettings } from '../options.ts';
import { AttentionGraph } from './attention-graph.ts';

/** What the forward pass gives. */
interface ForwardValues {
  /** [batch, heads, queries, d] */
  readonly output: OnnxValue;
  /** [batch, heads, queries] */
  readonly lse: OnnxValue;
  /** [batch, heads, queries, 2]: the largest score of each row, and the sum of its weights. */
  readonly statistics: OnnxValue;
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
      output: a.filled(outputShape, q!),
      lse: a.filled(lseShape, q!, -Infinity),
      statistics: a.filled([...lseShape, 2], q!, 1),
    };
  }
  const [groupedQ, sharedK, sharedV] = [a.grouped(q!, headDimension), a.shared(k!), a.shared(v!)];
  const blocks = a.blocks(queries, keys).map((block) => {
    const seen = a.seenBy(block);
    if (seen.end === 0) {
      const leading = [...groupedQ.shape.slice(0, 3), block.end - block.start];
      const filled = (columns: number, value: number) => a.filled([...leading, columns], q!, value);
      return [filled(headDimension, 0), filled(1, -Infinity), filled(2, 1)];
    }
    const scores = a.scores(groupedQ, sharedK, block, seen);
    const largest = a.finite(a.reduce('ReduceMax', scores));
    const weights = graph.node('Exp', [graph.node('Sub', [scores, largest])]);
    const sums = a.reduce('ReduceSum', weights);
    // The largest weight of a row is 1, so its sum is less only where it is 0: where no key is seen.
    const divisor = graph.node('Max', [sums, graph.scalar(sums.dtype, 1)]);
    const lse = graph.node('Add', [largest, graph.node('Log', [sums])]);
    const output = graph.node('Div', [a.product(weights, a.slice(sharedV, seen)), divisor]);
    return [output, lse, a.beside([largest, divisor])];
  });
  const [output, lse, statistics] = a.join(blocks);
  return {
    output: graph.reshape(output!, outputShape),
    lse: graph.reshape(lse!, lseShape),
    statistics: graph.reshape(statistics!, [...lseShape, 2]),
  };
}
