import {
  type Tensor,
  add,
  cast,
  causalMask,
  div,
  equal,
  exp,
  full,
  log,
  matmul,
  max,
  maximum,
  reshape,
  sub,
  sum,
  transpose,
  unsqueeze,
  where,
  zeros,
} from '@roofline/tensor-core';
import { accumulatorDType, lowestScore } from './dtypes.ts';
import { attentionSizes } from './operands.ts';
import type { AttentionSettings } from './options.ts';

/**
 * softmax(scale · q kᵀ + mask) v and its log-sum-exp in separate ops, whose scores take queries · keys numbers a head:
 * what attention is. Rows that see no key are zeros, and their log-sum-exp is -∞. Call it in a scope.
 */
export function plainAttention(
  [q, k, v]: readonly [q: Tensor, k: Tensor, v: Tensor],
  { causal, scale }: AttentionSettings,
): { output: Tensor; lse: Tensor } {
  const sizes = attentionSizes('plainAttention', q, k, v);
  const { batch, heads, queries, keys } = sizes;
  const wide = accumulatorDType(q.dtype);
  if (q.size === 0 || keys === 0) {
    const lse = full([batch, heads, queries], -Infinity, { dtype: wide, device: q.device });
    return { output: zeros(q.shape, { dtype: q.dtype, device: q.device }), lse };
  }
  const [groupedQ, sharedK, sharedV] = [groupHeads(q, sizes), unsqueeze(k, 2), unsqueeze(v, 2)];
  const products = matmul(groupedQ, transpose(sharedK), { scale });
  const scores = cast(causal ? causalMask(products) : products, wide);
  // Nothing depends on what is subtracted, so neither does a gradient.
  const shift = maximum(max(scores.detach(), { dims: -1, keepDims: true }), lowestScore(wide));
  const exponentials = exp(sub(scores, shift));
  const sums = sum(exponentials, { dims: -1, keepDims: true });
  const isEmpty = equal(sums, 0);
  const weights = div(exponentials, where(isEmpty, 1, sums));
  const lse = where(isEmpty, -Infinity, add(shift, log(where(isEmpty, 1, sums))));
  return {
    output: reshape(matmul(cast(weights, v.dtype), sharedV), q.shape),
    lse: reshape(lse, [batch, heads, queries]),
  };
}

/** q as [batch, keyHeads, heads / keyHeads, queries, head dimension]; heads that share keys and values lie together. */
export function groupHeads(
  q: Tensor,
  { batch, heads, keyHeads }: { batch: number; heads: number; keyHeads: number },
): Tensor {
  return reshape(q, [batch, keyHeads, heads / keyHeads, ...q.shape.slice(2)]);
}
