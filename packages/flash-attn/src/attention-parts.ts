import {
  type DType,
  type Tensor,
  add,
  apply,
  concat,
  contiguous,
  empty,
  log,
  onesLike,
  select,
  unsqueeze,
} from '@roofline/tensor-core';
import { accumulatorDType } from './dtypes.ts';
import { flashAttentionBackwardOp, flashAttentionOp } from './flash-attention-op.ts';
import { headLayout, swapLayout } from './head-layout.ts';
import { checkOperands } from './operands.ts';
import { type AttentionSettings, attentionOptions, attentionSettings } from './options.ts';

/** What attention over some of the keys gives. */
export interface AttentionPart {
  /** [batch, heads, queries, d], of the dtype of q, as if there were no other keys. */
  readonly output: Tensor;
  /** Of each row a number such as its largest score, and the sum of exp(score - largest): [batch, heads, queries], float32 or float64. */
  readonly largest: Tensor;
  readonly sum: Tensor;
}

/**
 * Attention over one part of the keys after the other, whose results are joined by `largest` and `sum`: what ring attention of
 * @roofline/collectives takes. Neither records a tape.
 */
export const flashAttentionParts = {
  /** `flashAttention` of some keys; each query must see one of them. Throws what `flashAttention` throws. */
  forward(q: Tensor, k: Tensor, v: Tensor, settings: AttentionSettings): AttentionPart {
    const layout = headLayout(v);
    const attributes = { ...checked('forward', q, k, v, settings), deterministic: false, layout };
    const [stored, lse, statistics] = apply(flashAttentionOp, [q, k, v], attributes) as [
      Tensor,
      Tensor,
      Tensor,
    ];
    const output = swapLayout(stored, layout);
    if (!hasStatistics(q.dtype)) return { output, largest: lse, sum: onesLike(lse) };
    return { output, largest: select(statistics, 3, 0), sum: select(statistics, 3, 1) };
  },

  /**
   * What some keys contribute to the gradients of q, k and v, where `joined` is attention over all keys and `gradient` that of its
   * output. Throws what `flashAttention` throws.
   */
  backward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    joined: AttentionPart,
    gradient: Tensor,
    settings: AttentionSettings,
  ): readonly [q: Tensor, k: Tensor, v: Tensor] {
    const known = checked('backward', q, k, v, settings);
    const { output, largest, sum } = joined;
    const lse = add(largest, log(sum));
    const statistics = hasStatistics(q.dtype)
      ? concat([unsqueeze(largest, 3), unsqueeze(sum, 3)], 3)
      : empty([0], { dtype: lse.dtype, device: q.device });
    const operands = [q, k, v];
    const layouts = operands.map(headLayout);
    const attributes = { ...known, deterministic: false, layouts };
    const stored = apply(
      flashAttentionBackwardOp,
      [...operands, output, contiguous(lse), statistics, gradient],
      attributes,
    );
    return stored.map((x, i) => swapLayout(x, layouts[i]!)) as [Tensor, Tensor, Tensor];
  },
};

function checked(
  pass: string,
  q: Tensor,
  k: Tensor,
  v: Tensor,
  settings: AttentionSettings,
): AttentionSettings {
  const op = `flashAttentionParts.${pass}`;
  return attentionSettings(op, checkOperands(op, q, k, v), settings, attentionOptions);
}

/** In low precision the rounding of the log-sum-exp does not matter. */
function hasStatistics(dtype: DType): boolean {
  return accumulatorDType(dtype) === dtype;
}
