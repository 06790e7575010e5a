import type { OnnxGraph, OnnxValue } from '@roofline/tensor-core';
import type { Block } from '../blocks.ts';
import type { AttentionSizes } from '../operands.ts';
import type { AttentionSettings } from '../options.ts';
import { AttentionGraph } from './attention-graph.ts';

/**
 * The gradients of q, k and v, of their shapes, from the weights calculated again by the log-sum-exp: in blocks of queries
 * for q, and in blocks of keys for k and v. Inputs are q, k, v, what the forward pass gave, and the gradients of the
 * output and, if it has one, of the log-sum-exp.
 */
export function buildBackward(
  graph: OnnxGraph,
  [q, k, v, output, lse, statistics, gradO, gradLse]: readonly OnnxValue[],
  sizes: AttentionSizes,
  settings: AttentionSettings,
): [gradQ: OnnxValue, gradK: OnnxValue, gradV: OnnxValue] {
  const a = new AttentionGraph(graph, sizes, settings);
  if (sizes.batch * sizes.heads * sizes.queries * sizes.keys === 0) {
    return [a.filled(q!.shape, q!), a.filled(k!.shape, k!), a.filled(v!.shape, v!)];
  }
  const grouped = (x: OnnxValue) => a.grouped(x, sizes.headDimension);
  const own = a.reduce('ReduceSum', graph.node('Mul', [grouped(gradO!), grouped(output!)]));
  const saved: SavedForBackward = {
    q: grouped(q!),
    k: a.shared(k!),
    v: a.shared(v!),
    gradO: grouped(gradO!),
    ...shiftAndDivisor(a, lse!, statistics!),
    delta: gradLse ? graph.node('Sub', [own, a.grouped(gradLse, 1)]) : own,
  };
  const [gradK, gradV] = gradientsOfKeys(a, saved);
  return [
    graph.reshape(gradientOfQueries(a, saved), q!.shape),
    graph.reshape(gradK, k!.shape),
    graph.reshape(gradV, v!.shape),
  ];
}

interface SavedForBackward {
  readonly q: OnnxValue;
  readonly k: OnnxValue;
  readonly v: OnnxValue;
  readonly gradO: OnnxValue;
  /** Weights are exp(score - shift) / divisor. */
  readonly shift: OnnxValue;
  /** Null for 1. */
  readonly divisor: OnnxValue | null;
  /** Σ dO ∘ O of each row, less the gradient of its log-sum-exp. */
  readonly delta: OnnxValue;
}

/** Of each row its largest score and the sum of its weights or, in low precision, the log-sum-exp of both. */
function shiftAndDivisor(
  a: AttentionGraph,
  lse: OnnxValue,
  statistics: OnnxValue,
): { shift: OnnxValue; divisor: OnnxValue | null } {
  if (statistics.shape[0] === 0) return { shift: a.finite(a.grouped(lse, 1)), divisor: null };
  const both = a.grouped(statistics, 2);
  return { shift: a.slice(both, { start: 0, end: 1 }, 4), divisor: a.slice(both, { start: 1, end: 2 }, 4) };
}

/** The weights of a block of queries for a block of keys, and the gradient of their scores. */
function tileGradients(
  a: AttentionGraph,
  { q, k, v, gradO, shift, divisor, delta }: SavedForBackward,
  queries: Block,
  keys: Block,
): { weights: OnnxValue; gradScores: OnnxValue } {
  const { graph } = a;
  const ofQueries = (x: OnnxValue) => a.slice(x, queries);
  const shifted = graph.node('Sub', [a.scores(q, k, queries, keys), ofQueries(shift)]);
  const exponentials = graph.node('Exp', [shifted]);
  const weights = divisor ? graph.node('Div', [exponentials, ofQueries(divisor)]) : exponentials;
  const gradWeights = a.productWithTransposed(ofQueries(gradO), a.slice(v, keys), 1);
  const differences = graph.node('Sub', [gradWeights, ofQueries(delta)]);
  // A weight of 0 would not keep a difference that is infinite or NaN from keys that its query does not see.
  const gradScores = a.seenOnly(graph.node('Mul', [weights, differences]), queries, keys, 0);
  return { weights, gradScores };
}

function gradientOfQueries(a: AttentionGraph, saved: SavedForBackward): OnnxValue {
  const blocks = a.blocks(a.sizes.queries, a.sizes.keys).map((block) => {
    const seen = a.seenBy(block);
    if (seen.end === 0) return [a.filled(a.slice(saved.q, block).shape, saved.q)];
    const { gradScores } = tileGradients(a, saved, block, seen);
    return [a.product(gradScores, a.slice(saved.k, seen))];
  });
  return a.scaled(a.join(blocks)[0]!);
}

/**
 * Scores are calculated as in the forward pass, queries by keys: a product the other way round may round otherwise, and
 * large scores' weights would then not be those that made the output.
 */
function gradientsOfKeys(a: AttentionGraph, saved: SavedForBackward): [gradK: OnnxValue, gradV: OnnxValue] {
  const blocks = a.blocks(a.sizes.keys, a.sizes.queries).map((block) => {
    const seeing = a.seeing(block);
    const { weights, gradScores } = tileGradients(a, saved, seeing, block);
    return [
      sumOfGroup(a.graph, a.productOfTransposed(gradScores, a.slice(saved.q, seeing))),
      sumOfGroup(a.graph, a.productOfTransposed(weights, a.slice(saved.gradO, seeing))),
    ];
  });
  const [gradK, gradV] = a.join(blocks);
  return [a.scaled(gradK!), gradV!];
}

function sumOfGroup(graph: OnnxGraph, x: OnnxValue): OnnxValue {
  if (x.shape[2] === 1) return x;
  const shape = x.shape.map((length, i) => (i === 2 ? 1 : length));
  return graph.node('ReduceSum', [x, graph.integers([2])], { keepdims: 1 }, { shape });
}
