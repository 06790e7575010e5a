import type { OnnxGraph, OnnxValue, Shape } from '@roofline/tensor-core';
import type { AttentionSizes } from '../operands.ts';
import type { AttentionSettings } from '../options.ts';

/** Scores that exist at a time, of all heads together, where a block has at least `fewestRows` rows: 16 MiB. */
const scoresAtATime = 2 ** 22;
const fewestRows = 16;

/** The most negative float32: what stands in for a maximum of -∞, so that -∞ minus it is -∞ still. */
const lowest = -3.4028234663852886e38;

/** Part of a sequence: from `start` up to, not including, `end`. */
interface Block {
  readonly start: number;
  readonly end: number;
}

/**
 * What the graphs of attention are written with. Values are [batch, keyHeads, group, sequence, d], where `group` heads
 * of q share a head of k and v; for k and v it is 1. Scores exist for one block of rows at a time, so memory is linear in
 * the sequence; each block's nodes run before the next one's.
 */
class AttentionGraph {
  readonly graph: OnnxGraph;
  readonly sizes: AttentionSizes;
  readonly causal: boolean;
  readonly #scale: number;
  readonly #positions: OnnxValue;

  constructor(graph: OnnxGraph, sizes: AttentionSizes, { causal, scale }: AttentionSettings) {
    this.graph = graph;
    this.sizes = sizes;
    this.causal = causal;
    this.#scale = scale;
    const longest = Math.max(sizes.queries, sizes.keys);
    this.#positions = graph.constant(
      'int32',
      [longest],
      Int32Array.from({ length: longest }, (_, i) => i),
    );
  }

  /** Heads that share a head of k and v lie together. */
  grouped(x: OnnxValue, ...columns: number[]): OnnxValue {
    const { batch, heads, keyHeads, queries } = this.sizes;
    return this.graph.reshape(x, [batch, keyHeads, heads / keyHeads, queries, ...columns]);
  }

  shared(x: OnnxValue): OnnxValue {
    const { batch, keyHeads, keys, headDimension } = this.sizes;
    return this.graph.reshape(x, [batch, keyHeads, 1, keys, headDimension]);
  }

  /** As many rows, against `columns` each, as may exist at a time. */
  blocks(rows: number, columns: number): Block[] {
    const { batch, heads } = this.sizes;
    const most = Math.max(fewestRows, Math.floor(scoresAtATime / (batch * heads * columns)));
    // Of equal size, so that they share shapes and what ONNX Runtime allocates for them.
    const count = Math.ceil(rows / most);
    const size = Math.ceil(rows / count);
    return Array.from({ length: count }, (_, i) => ({
      start: i * size,
      end: Math.min((i + 1) * size, rows),
    })).filter(({ start, end }) => start < end);
  }

  /** The keys below this one are all that the queries of a block see. */
  keysSeenBy({ end }: Block): number {
    const { queries, keys } = this.sizes;
    return this.causal ? Math.min(Math.max(end + keys - queries, 0), keys) : keys;
  }

  /**
   * The queries from this one on hold all that see a key of a block. Never a single one of many: ONNX Runtime multiplies
   * one row in another order than several.
   */
  firstQueryOf({ start }: Block): number {
    const { queries, keys } = this.sizes;
    const first = this.causal ? Math.max(0, start - (keys - queries)) : 0;
    return first - (first % fewestRows);
  }

  slice(x: OnnxValue, { start, end }: Block, dimension = x.shape.length - 2): OnnxValue {
    if (start === 0 && end === x.shape[dimension]) return x;
    const shape = x.shape.map((length, i) => (i === dimension ? end - start : length));
    const limits = [[start], [end], [dimension]].map((values) => this.graph.integers(values));
    return this.graph.node('Slice', [x, ...limits], {}, { shape });
  }

  transpose(x: OnnxValue): OnnxValue {
    const order = x.shape.map((_, i) => i);
    const swapped = [...order.slice(0, -2), order.length - 1, order.length - 2];
    return this.graph.node('Transpose', [x], { perm: swapped }, { shape: swapped.map((i) => x.shape[i]!) });
  }

  scaled(x: OnnxValue): OnnxValue {
    return this.graph.node('Mul', [x, this.graph.scalar(x.dtype, this.#scale)]);
  }

  /** a · b, where k and v repeat over a group. */
  product(a: OnnxValue, b: OnnxValue): OnnxValue {
    const leading = a.shape.slice(0, -2).map((length, i) => Math.max(length, b.shape[i]!));
    return this.graph.node('MatMul', [a, b], {}, { shape: [...leading, a.shape.at(-2)!, b.shape.at(-1)!] });
  }

  /** aᵀ · b; ONNX Runtime's node for it knows no float64. */
  transposedProduct(a: OnnxValue, b: OnnxValue): OnnxValue {
    if (a.dtype === 'float64') return this.product(this.transpose(a), b);
    const shape = [...a.shape.slice(0, -2), a.shape.at(-1)!, b.shape.at(-1)!];
    return this.graph.node('FusedMatMul', [a, b], { transA: 1 }, { shape, domain: 'com.microsoft' });
  }

  reduce(type: 'ReduceSum' | 'ReduceMax', x: OnnxValue): OnnxValue {
    const last = this.graph.integers([x.shape.length - 1]);
    return this.graph.node(type, [x, last], { keepdims: 1 }, { shape: [...x.shape.slice(0, -1), 1] });
  }

  /** x, or the most negative number where that is -∞. */
  finite(x: OnnxValue): OnnxValue {
    return this.graph.node('Max', [x, this.graph.scalar(x.dtype, lowest)]);
  }

  /** Scores with -∞ where a query does not see a key. */
  masked(scores: OnnxValue, queries: Block, keys: Block): OnnxValue {
    const { graph } = this;
    const shift = this.sizes.keys - this.sizes.queries;
    if (!this.causal || keys.end <= queries.start + shift + 1) return scores;
    const along = (block: Block, isRow: boolean) => {
      const length = block.end - block.start;
      return graph.reshape(this.slice(this.#positions, block, 0), isRow ? [length, 1] : [1, length]);
    };
    const lastSeen = graph.node('Add', [along(queries, true), graph.scalar('int32', shift)]);
    const isSeen = graph.node(
      'LessOrEqual',
      [along(keys, false), lastSeen],
      {},
      {
        shape: scores.shape.slice(-2),
        dtype: 'bool',
      },
    );
    const never = graph.scalar(scores.dtype, -Infinity);
    return graph.node('Where', [isSeen, scores, never], {}, { shape: scores.shape, dtype: scores.dtype });
  }

  zeros(shape: Shape, value: OnnxValue, fill = 0): OnnxValue {
    return this.graph.node(
      'Expand',
      [this.graph.scalar(value.dtype, fill), this.graph.integers(shape)],
      {},
      { shape },
    );
  }

  /**
   * Joins the rows of blocks, of several values each. On the way a block's values stand side by side in one: ONNX Runtime
   * goes back from each output of a graph by itself, and would hold the scores of all blocks until the last was done.
   */
  join(blocks: readonly (readonly OnnxValue[])[]): OnnxValue[] {
    const [first] = blocks;
    if (blocks.length === 1) return [...first!];
    const widths = first!.map(({ shape }) => shape.at(-1)!);
    const rows = this.#concat(
      blocks.map((values) => this.#concat(values, 4)),
      3,
    );
    if (widths.length === 1) return [rows];
    const shapes = widths.map((width) => ({ shape: [...rows.shape.slice(0, -1), width], dtype: rows.dtype }));
    return this.graph.nodes('Split', [rows, this.graph.integers(widths)], { axis: 4 }, shapes);
  }

  #concat(values: readonly OnnxValue[], axis: number): OnnxValue {
    if (values.length === 1) return values[0]!;
    const length = values.reduce((sum, { shape }) => sum + shape[axis]!, 0);
    const shape = values[0]!.shape.map((own, i) => (i === axis ? length : own));
    return this.graph.node('Concat', values, { axis }, { shape });
  }
}

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
    const seen = { start: 0, end: a.keysSeenBy(block) };
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
    const seen = { start: 0, end: a.keysSeenBy(block) };
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
    const seeing = { start: a.firstQueryOf(block), end: sizes.queries };
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
