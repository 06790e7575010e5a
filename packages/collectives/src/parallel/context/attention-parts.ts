import {
  type DType,
  type Tensor,
  add,
  cast,
  causalMask,
  div,
  exp,
  matmul,
  max,
  maximum,
  mul,
  range,
  reshape,
  squeeze,
  sub,
  sum,
  transpose,
  unsqueeze,
} from '@roofline/tensor-core';

/** What attention over some of the keys gives. */
export interface AttentionPart {
  /** [batch, heads, queries, d], as if there were no other keys. */
  readonly output: Tensor;
  /** Of each row a number such as its largest score, and the sum of exp(score - largest): [batch, heads, queries]. */
  readonly largest: Tensor;
  readonly sum: Tensor;
}

interface PartSettings {
  readonly causal: boolean;
  readonly scale: number;
}

/**
 * Attention over some of the keys, q [batch, heads, queries, d] and k, v [batch, keyHeads, keys, d], and what these keys contribute to
 * the gradients, given attention over all of them: `flashAttentionParts` of @roofline/flash-attn, or `plainAttentionParts`.
 */
export interface AttentionParts {
  forward(q: Tensor, k: Tensor, v: Tensor, settings: PartSettings): AttentionPart;
  backward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    joined: AttentionPart,
    gradient: Tensor,
    settings: PartSettings,
  ): readonly [q: Tensor, k: Tensor, v: Tensor];
}

/** What is summed over many rows or parts: float64 of float64, else float32. */
export function wideDType(dtype: DType): DType {
  return dtype === 'float64' ? dtype : 'float32';
}

/** Attention over all keys of two parts (Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"). Outputs are wide. */
export function joinParts(a: AttentionPart, b: AttentionPart): AttentionPart {
  const largest = maximum(a.largest, b.largest);
  const [weightA, weightB] = [a, b].map((part) => mul(part.sum, exp(sub(part.largest, largest))));
  const both = add(weightA!, weightB!);
  const share = (part: AttentionPart, weight: Tensor) =>
    mul(cast(part.output, both.dtype), unsqueeze(div(weight, both), 3));
  return { output: add(share(a, weightA!), share(b, weightB!)), largest, sum: both };
}

/** In separate ops, whose scores take queries · keys numbers a head. */
export const plainAttentionParts: AttentionParts = {
  forward(q, k, v, settings) {
    const scores = scoresOf(q, k, settings);
    const largest = max(scores, { dims: -1, keepDims: true });
    const exponentials = exp(sub(scores, largest));
    const sums = sum(exponentials, { dims: -1, keepDims: true });
    const weights = cast(div(exponentials, sums), v.dtype);
    const output = range('attention.values', () => matmul(weights, v));
    const rows = (x: Tensor) => reshape(squeeze(x, 3), q.shape.slice(0, 3));
    return { output: reshape(output, q.shape), largest: rows(largest), sum: rows(sums) };
  },

  backward(q, k, v, { output, largest, sum: sums }, gradient, settings) {
    const [keyHeads, dtype] = [k.shape[1]!, wideDType(q.dtype)];
    const grouped = (x: Tensor) => rowsOfGroups(x, keyHeads);
    const ofRows = (x: Tensor) => grouped(unsqueeze(x, 3));
    const exponentials = exp(sub(scoresOf(q, k, settings), ofRows(largest)));
    const weights = div(exponentials, ofRows(sums));
    const [gradO, wideQ] = [cast(grouped(gradient), dtype), cast(grouped(q), dtype)];
    const [wideK, wideV] = [cast(k, dtype), cast(v, dtype)];
    const shares = sum(mul(gradO, cast(grouped(output), dtype)), { dims: -1, keepDims: true });
    const gradScores = mul(weights, sub(matmul(gradO, transpose(wideV)), shares));
    const { scale } = settings;
    return [
      cast(reshape(matmul(gradScores, wideK, { scale }), q.shape), q.dtype),
      cast(matmul(transpose(gradScores), wideQ, { scale }), k.dtype),
      cast(matmul(transpose(weights), gradO), v.dtype),
    ];
  },
};

/** [batch, keyHeads, heads / keyHeads · queries, keys]: -∞ for keys that a query does not see. */
function scoresOf(q: Tensor, k: Tensor, { causal, scale }: PartSettings): Tensor {
  const [batch, heads, queries] = q.shape as [number, number, number];
  const keys = k.shape[2]!;
  const products = cast(matmul(rowsOfGroups(q, k.shape[1]!), transpose(k), { scale }), wideDType(q.dtype));
  if (!causal) return products;
  return reshape(causalMask(reshape(products, [batch, heads, queries, keys])), products.shape);
}

/** Rows of heads that share keys and values, one after the other: [batch, keyHeads, heads / keyHeads · queries, ...]. */
function rowsOfGroups(x: Tensor, keyHeads: number): Tensor {
  const [batch, heads, queries, ...rest] = x.shape as [number, number, number, ...number[]];
  return reshape(x, [batch, keyHeads, (heads / keyHeads) * queries, ...rest]);
}
