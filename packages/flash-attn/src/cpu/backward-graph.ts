import type { OnnxGraph, OnnxValue } from '@roofline/tensor-core';
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
  [q, k, v, output, lse, residue, gradO, gradLse]: readonly OnnxValue[],
  sizes: AttentionSizes,
  settings: AttentionSettings,
): [gradQ: OnnxValue, gradK: OnnxValue, gradV: OnnxValue] {
  const a = new AttentionGraph(graph, sizes, settings);
  if (sizes.batch * sizes.heads * sizes.queries * sizes.keys === 0) {
    return [a.zeros(q!.shape, q!), a.zeros(k!.shape, k!), a.zeros(v!.shape, v!)];
  }
  const grouped = (x: OnnxValue) => a.grouped(x, sizes.headDimension);
  const own = a.reduce('ReduceSum', graph.node('Mul', [grouped(gradO!), grouped(output!)]));
  const saved: SavedForBackward = {
    q: grouped(q!),
    k: a.shared(k!),
    v: a.shared(v!),
    gradO: grouped(gradO!),
    shift: a.finite(a.grouped(lse!, 1)),
    residue: residue!.shape[0] === 0 ? null : a.grouped(residue!, 1),
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
  readonly shift: OnnxValue;
  /** Null in low precision. */
  readonly residue: OnnxValue | null;
  /** Σ dO ∘ O of each row, less the gradient of its log-sum-exp. */
  readonly delta: OnnxValue;
}

/** exp(scores - lse): less its rounded value, which is exact for the largest scores, and then less the rest. */
function weightsOf(
  graph: OnnxGraph,
  scores: OnnxValue,
  shift: OnnxValue,
  residue: OnnxValue | null,
): OnnxValue {
  const shifted = graph.node('Sub', [scores, shift]);
  return graph.node('Exp', [residue ? graph.node('Sub', [shifted, residue]) : shifted]);
}

function gradientOfQueries(
  a: AttentionGraph,
  { q, k, v, gradO, shift, residue, delta }: SavedForBackward,
): OnnxValue {
  const { graph } = a;
  const scaledQ = a.scaled(q);
  const [transposedK, transposedV] = [a.transpose(k), a.transpose(v)];
  const blocks = a.blocks(a.sizes.queries, a.sizes.keys).map((block) => {
    const seen = a.seenBy(block);
    const ofBlock = (x: OnnxValue) => a.slice(x, block);
    if (seen.end === 0) return [a.zeros(ofBlock(q).shape, q)];
    const products = a.product(ofBlock(scaledQ), a.slice(transposedK, seen, 4));
    const scores = a.masked(products, block, seen);
    const weights = weightsOf(graph, scores, ofBlock(shift), residue && ofBlock(residue));
    const gradWeights = a.product(ofBlock(gradO), a.slice(transposedV, seen, 4));
    const gradScores = graph.node('Mul', [weights, graph.node('Sub', [gradWeights, ofBlock(delta)])]);
    return [a.product(gradScores, a.slice(k, seen))];
  });
  return a.scaled(a.join(blocks)[0]!);
}

/**
 * Scores are calculated as in the forward pass, queries by keys: a product the other way round may round otherwise, and
 * large scores' weights would then not be those that made the output.
 */
function gradientsOfKeys(a: AttentionGraph, saved: SavedForBackward): [gradK: OnnxValue, gradV: OnnxValue] {
  const { graph, sizes } = a;
  const { q, k, v, gradO, shift, residue, delta } = saved;
  const scaledQ = a.scaled(q);
  const [transposedK, transposedV] = [a.transpose(k), a.transpose(v)];
  const blocks = a.blocks(sizes.keys, sizes.queries).map((block) => {
    const seeing = a.seeing(block);
    const ofQueries = (x: OnnxValue) => a.slice(x, seeing);
    const products = a.product(ofQueries(scaledQ), a.slice(transposedK, block, 4));
    const scores = a.masked(products, seeing, block);
    const weights = weightsOf(graph, scores, ofQueries(shift), residue && ofQueries(residue));
    const gradWeights = a.product(ofQueries(gradO), a.slice(transposedV, block, 4));
    const gradScores = graph.node('Mul', [weights, graph.node('Sub', [gradWeights, ofQueries(delta)])]);
    return [
      sumOfGroup(graph, a.transposedProduct(gradScores, ofQueries(q))),
      sumOfGroup(graph, a.transposedProduct(weights, ofQueries(gradO))),
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
