import {
  type FunctionContext,
  RooflineError,
  type Tensor,
  add,
  addInPlace,
  arange,
  cast,
  checkOptions,
  concat,
  defineFunction,
  describeValue,
  div,
  equal,
  exp,
  full,
  lessEqual,
  matmul,
  max,
  maximum,
  mul,
  reshape,
  scope,
  slice,
  sub,
  sum,
  transpose,
  unsqueeze,
  where,
  withoutAutocast,
  zeros,
} from '@roofline/tensor-core';
import { type Block, blocksOf, keysSeenBy, seesAll } from './blocks.ts';
import { accumulatorDType, autocastOperandDType, lowestScore } from './dtypes.ts';
import { type AttentionSizes, checkOperands } from './operands.ts';
import {
  type AttentionOptions,
  type AttentionSettings,
  attentionOptions,
  attentionSettings,
} from './options.ts';
import { groupHeads } from './reference.ts';

/** Options of `tiledAttention`. */
export interface TiledAttentionOptions extends AttentionOptions {
  /** Queries and keys of a tile, B_r and B_c of the paper. Default 128 of each. */
  blockSize?: { readonly queries: number; readonly keys: number };
}

const knownOptions = [...attentionOptions, 'blockSize'];

/** One call: its sizes and settings, and the tiles that it is cut into. */
interface Problem extends AttentionSizes, AttentionSettings {
  readonly blockSize: { readonly queries: number; readonly keys: number };
}

/**
 * Attention by tiles, in ops of tensor-core and hence on every device: FlashAttention-2's Algorithm 1 and, for its
 * gradient, Algorithm 2 (Dao 2023, "FlashAttention-2: Faster Attention with Better Parallelism and Work
 * Partitioning"). No more than one tile of scores exists at a time, so memory is linear in the sequence; backward
 * calculates the weights again from their rows' statistics. Operands and errors are those of `flashAttention`.
 */
export function tiledAttention(q: Tensor, k: Tensor, v: Tensor, options: TiledAttentionOptions = {}): Tensor {
  const sizes = checkOperands('tiledAttention', q, k, v);
  const settings = attentionSettings('tiledAttention', sizes, options, knownOptions);
  const { blockSize = { queries: 128, keys: 128 } } = options;
  checkBlockSize(blockSize);
  const problem = { ...sizes, ...settings, blockSize };
  const attention = defineFunction<Tensor>({
    name: 'tiledAttention',
    forward: (context, ...operands) => forward(context, problem, operands as [Tensor, Tensor, Tensor]),
    backward: (context, gradient) => backward(problem, context.saved, gradient!),
  });
  // As a whole it is one op to autocast, whose inputs are lowered; what happens inside stays as it is.
  return scope(() => {
    const lowered = [q, k, v].map((x) => cast(x, autocastOperandDType(x.dtype)));
    return withoutAutocast(() => attention(...lowered));
  });
}

function checkBlockSize(blockSize: { readonly queries: number; readonly keys: number }): void {
  checkOptions('tiledAttention: blockSize', blockSize, ['queries', 'keys']);
  const { queries, keys } = blockSize;
  for (const [name, size] of Object.entries({ queries, keys })) {
    if (!Number.isInteger(size) || size < 1) {
      throw new RooflineError(
        'OPTION',
        `tiledAttention: blockSize.${name} must be a whole number from 1, not ${describeValue(size)}.`,
      );
    }
  }
}

/** Algorithm 1. Heads that share keys and values lie in a dimension of their own, along which k and v repeat. */
function forward(context: FunctionContext, problem: Problem, [q, k, v]: [Tensor, Tensor, Tensor]): Tensor {
  if (q.size === 0) {
    context.save(q, k, v);
    return zeros(q.shape, { dtype: q.dtype, device: q.device });
  }
  const [groupedQ, sharedK, sharedV] = [groupHeads(q, problem), unsqueeze(k, 2), unsqueeze(v, 2)];
  const rows = blocksOf(problem.queries, problem.blockSize.queries).map((block) =>
    scope(() => rowsOfOutput(problem, block, rowsOf(groupedQ, block), sharedK, sharedV)),
  );
  const joined = (name: keyof ForwardRows) =>
    concat(
      rows.map((row) => row[name]),
      -2,
    );
  const output = reshape(joined('output'), q.shape);
  context.save(q, k, v, output, joined('shift'), joined('divisor'));
  return output;
}

/**
 * What the forward pass gives for some queries. The paper keeps the log-sum-exp, shift + log(divisor), in place of
 * both, but rounded at the size of the scores it would cost float32 the last digits of large scores' weights.
 */
interface ForwardRows {
  readonly output: Tensor;
  /** The largest score of each row. */
  readonly shift: Tensor;
  /** The sum of each row's weights, 1 where there are none. */
  readonly divisor: Tensor;
}

/** The outer loop's body: one block of queries over all keys that it sees. */
function rowsOfOutput(problem: Problem, rows: Block, q: Tensor, k: Tensor, v: Tensor): ForwardRows {
  const wide = accumulatorDType(q.dtype);
  const lowest = lowestScore(wide);
  const column = { dtype: wide, device: q.device };
  const statistics = [...q.shape.slice(0, -1), 1];
  let largest = full(statistics, -Infinity, column);
  let sums = zeros(statistics, column);
  let output = zeros(q.shape, column);
  for (const columns of blocksOf(keysSeenBy(problem, rows), problem.blockSize.keys)) {
    const next = scope(() => {
      const scores = scoresOf(problem, rows, columns, q, rowsOf(k, columns));
      const grown = maximum(largest, max(scores, { dims: -1, keepDims: true }));
      const weights = exp(sub(scores, maximum(grown, lowest)));
      // What was summed before was weighted by the maximum before.
      const factor = exp(sub(largest, maximum(grown, lowest)));
      const product = wideProduct(cast(weights, v.dtype), rowsOf(v, columns));
      return {
        largest: grown,
        sums: add(mul(sums, factor), sum(weights, { dims: -1, keepDims: true })),
        output: add(mul(output, factor), product),
      };
    });
    for (const replaced of [largest, sums, output]) replaced.dispose();
    ({ largest, sums, output } = next);
  }
  const divisor = where(equal(sums, 0), 1, sums);
  return { output: cast(div(output, divisor), q.dtype), shift: maximum(largest, lowest), divisor };
}

/** Algorithm 2: the gradients of q, k and v. */
function backward(problem: Problem, saved: readonly Tensor[], gradient: Tensor): Tensor[] {
  const [q, k, v, output, shift, divisor] = saved as [Tensor, Tensor, Tensor, Tensor, Tensor, Tensor];
  if (q.size === 0) return [q, k, v].map((x) => zeros(x.shape, { dtype: x.dtype, device: x.device }));
  const wide = { dtype: accumulatorDType(q.dtype), device: q.device };
  const grouped = (x: Tensor) => groupHeads(x, problem);
  const [groupedQ, gradO] = [grouped(q), grouped(gradient)];
  // dS = P ∘ (dP - Δ), of which a row's Δ = Σ P ∘ dP = Σ dO ∘ O needs no scores.
  const delta = sum(mul(cast(gradO, wide.dtype), cast(grouped(output), wide.dtype)), {
    dims: -1,
    keepDims: true,
  });
  const [gradQ, gradK, gradV] = [groupedQ, k, v].map((x) => zeros(x.shape, wide)) as [Tensor, Tensor, Tensor];
  const [sharedK, sharedV] = [unsqueeze(k, 2), unsqueeze(v, 2)];
  for (const columns of blocksOf(problem.keys, problem.blockSize.keys)) {
    const [keys, values] = [rowsOf(sharedK, columns), rowsOf(sharedV, columns)];
    for (const rows of blocksOf(problem.queries, problem.blockSize.queries)) {
      if (columns.start >= keysSeenBy(problem, rows)) continue;
      scope(() => {
        const [queries, gradRows] = [rowsOf(groupedQ, rows), rowsOf(gradO, rows)];
        const scores = scoresOf(problem, rows, columns, queries, keys);
        const weights = div(exp(sub(scores, rowsOf(shift, rows))), rowsOf(divisor, rows));
        const gradWeights = wideProduct(gradRows, transpose(values));
        const products = mul(weights, sub(gradWeights, rowsOf(delta, rows)));
        // A weight of 0 would not keep what is infinite or NaN from keys that its query does not see.
        const gradScores = cast(seenOnly(problem, rows, columns, products, 0), q.dtype);
        const ofGroup = (product: Tensor) => sum(product, { dims: 2 });
        const toValues = wideProduct(transpose(cast(weights, q.dtype)), gradRows);
        addInPlace(rowsOf(gradV, columns), ofGroup(toValues));
        addInPlace(rowsOf(gradQ, rows), wideProduct(gradScores, keys, problem.scale));
        addInPlace(
          rowsOf(gradK, columns),
          ofGroup(wideProduct(transpose(gradScores), queries, problem.scale)),
        );
      });
    }
  }
  return [reshape(gradQ, q.shape), gradK, gradV].map((sums) => cast(sums, q.dtype));
}

/** scale · q kᵀ of a tile, -∞ where a query does not see a key. */
function scoresOf(problem: Problem, rows: Block, columns: Block, q: Tensor, k: Tensor): Tensor {
  return seenOnly(problem, rows, columns, wideProduct(q, transpose(k), problem.scale), -Infinity);
}

/** Numbers of a tile, with `otherwise` in place of those that a query does not see. */
function seenOnly(problem: Problem, rows: Block, columns: Block, x: Tensor, otherwise: number): Tensor {
  if (seesAll(problem, rows, columns)) return x;
  const shift = problem.keys - problem.queries;
  const { device } = x;
  const lastSeen = unsqueeze(arange(rows.start + shift, rows.end + shift, 1, { device }), 1);
  const isSeen = lessEqual(arange(columns.start, columns.end, 1, { device }), lastSeen);
  return where(isSeen, x, otherwise);
}

/** A product of low-precision operands as it was added up, in float32. */
function wideProduct(a: Tensor, b: Tensor, scale = 1): Tensor {
  return matmul(a, b, { dtype: accumulatorDType(a.dtype), scale });
}

function rowsOf(x: Tensor, { start, end }: Block): Tensor {
  return slice(x, -2, start, end);
}
