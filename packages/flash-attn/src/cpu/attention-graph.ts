import type { OnnxGraph, OnnxValue, Shape } from '@roofline/tensor-core';
import { type Block, blocksOf, keysSeenBy, seesAll } from '../blocks.ts';
import { lowestScore } from '../dtypes.ts';
import type { AttentionSizes } from '../operands.ts';
import type { AttentionSettings } from '../options.ts';

/** Scores that exist at a time, of all heads together, where a block has at least `fewestRows` rows: 16 MiB. */
const scoresAtATime = 2 ** 22;
const fewestRows = 16;

/** ONNX Runtime's own operators. */
const domain = 'com.microsoft';

/**
 * What the graphs of attention are written with. Values are [batch, keyHeads, group, sequence, d], where `group` heads
 * of q share a head of k and v; for k and v it is 1. Scores exist for one block of rows at a time, so memory is linear in
 * the sequence; each block's nodes run before the next one's.
 */
export class AttentionGraph {
  readonly graph: OnnxGraph;
  readonly sizes: AttentionSizes;
  readonly #problem: AttentionSizes & AttentionSettings;
  readonly #scale: number;
  readonly #positions: OnnxValue;

  constructor(graph: OnnxGraph, sizes: AttentionSizes, { causal, scale }: AttentionSettings) {
    this.graph = graph;
    this.sizes = sizes;
    this.#problem = { ...sizes, causal, scale };
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

  /**
   * About as many rows, against `columns` each, as may exist at a time. Never a single one of many: ONNX Runtime multiplies
   * one row in another order than several, and backward would not find the scores of forward.
   */
  blocks(rows: number, columns: number): Block[] {
    const { batch, heads } = this.sizes;
    const most = Math.max(fewestRows, Math.floor(scoresAtATime / (batch * heads * columns)));
    // Of equal size, so that they share shapes and what ONNX Runtime allocates for them.
    let size = Math.ceil(rows / Math.ceil(rows / most));
    if (rows > 1) while (rows % size === 1) size++;
    return blocksOf(rows, size);
  }

  /** The keys that the queries of a block see. */
  seenBy(block: Block): Block {
    return { start: 0, end: keysSeenBy(this.#problem, block) };
  }

  /** Queries among which are all that see a key of a block, and as few rows as may be multiplied together. */
  seeing({ start }: Block): Block {
    const { queries, keys } = this.sizes;
    const first = this.#problem.causal ? Math.min(start - (keys - queries), queries - fewestRows) : 0;
    return { start: Math.max(0, first), end: queries };
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

  /** aᵀ · b; ONNX Runtime's node for it, and for the next, knows no float64. */
  productOfTransposed(a: OnnxValue, b: OnnxValue): OnnxValue {
    if (a.dtype === 'float64' || this.graph.standardOnly) return this.product(this.transpose(a), b);
    const shape = [...a.shape.slice(0, -2), a.shape.at(-1)!, b.shape.at(-1)!];
    return this.graph.node('FusedMatMul', [a, b], { transA: 1 }, { shape, domain });
  }

  /** scale · a · bᵀ */
  productWithTransposed(a: OnnxValue, b: OnnxValue, scale: number): OnnxValue {
    if (a.dtype === 'float64' || this.graph.standardOnly) {
      const product = this.product(a, this.transpose(b));
      return scale === 1 ? product : this.graph.node('Mul', [product, this.graph.scalar(a.dtype, scale)]);
    }
    const shape = [...a.shape.slice(0, -1), b.shape.at(-2)!];
    return this.graph.node('FusedMatMul', [a, b], { transB: 1, alpha: scale }, { shape, domain });
  }

  /** scale · q kᵀ of a block of queries and one of keys, -∞ where a query does not see a key. */
  scores(q: OnnxValue, k: OnnxValue, queries: Block, keys: Block): OnnxValue {
    const products = this.productWithTransposed(this.slice(q, queries), this.slice(k, keys), this.#scale);
    return this.seenOnly(products, queries, keys, -Infinity);
  }

  reduce(type: 'ReduceSum' | 'ReduceMax', x: OnnxValue): OnnxValue {
    const last = this.graph.integers([x.shape.length - 1]);
    return this.graph.node(type, [x, last], { keepdims: 1 }, { shape: [...x.shape.slice(0, -1), 1] });
  }

  /** x, or the most negative number where that is -∞. */
  finite(x: OnnxValue): OnnxValue {
    return this.graph.node('Max', [x, this.graph.scalar(x.dtype, lowestScore(x.dtype))]);
  }

  /** Numbers of a block of queries and one of keys, with `otherwise` in place of those that a query does not see. */
  seenOnly(x: OnnxValue, queries: Block, keys: Block, otherwise: number): OnnxValue {
    if (seesAll(this.#problem, queries, keys)) return x;
    const { graph } = this;
    const shift = this.sizes.keys - this.sizes.queries;
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
        shape: x.shape.slice(-2),
        dtype: 'bool',
      },
    );
    const { shape, dtype } = x;
    return graph.node('Where', [isSeen, x, graph.scalar(dtype, otherwise)], {}, { shape, dtype });
  }

  filled(shape: Shape, value: OnnxValue, fill = 0): OnnxValue {
    return this.graph.node(
      'Expand',
      [this.graph.scalar(value.dtype, fill), this.graph.integers(shape)],
      {},
      { shape },
    );
  }

  /**
   * Joins the rows of blocks, of several values each. On the way a block's values are side by side in one: ONNX Runtime
   * goes back from each output of a graph by itself, and would hold the scores of all blocks until the last was done.
   */
  join(blocks: readonly (readonly OnnxValue[])[]): OnnxValue[] {
    const [first] = blocks;
    if (blocks.length === 1) return [...first!];
    const widths = first!.map(({ shape }) => shape.at(-1)!);
    const rows = this.#concat(
      blocks.map((values) => this.beside(values)),
      3,
    );
    if (widths.length === 1) return [rows];
    const shapes = widths.map((width) => ({ shape: [...rows.shape.slice(0, -1), width], dtype: rows.dtype }));
    return this.graph.nodes('Split', [rows, this.graph.integers(widths)], { axis: 4 }, shapes);
  }

  /** Values of the same rows, side by side. */
  beside(values: readonly OnnxValue[]): OnnxValue {
    return this.#concat(values, 4);
  }

  #concat(values: readonly OnnxValue[], axis: number): OnnxValue {
    if (values.length === 1) return values[0]!;
    const length = values.reduce((sum, { shape }) => sum + shape[axis]!, 0);
    const shape = values[0]!.shape.map((own, i) => (i === axis ? length : own));
    return this.graph.node('Concat', values, { axis }, { shape });
  }
}
