import { type Tensor, apply, isGradEnabled, scope } from '@roofline/tensor-core';
import { compileBackwardAhead } from './cuda/compile-ahead.ts';
import { flashAttentionOp } from './flash-attention-op.ts';
import { headLayout, swapLayout } from './head-layout.ts';
import { checkOperands } from './operands.ts';
import { type AttentionOptions, attentionOptions, attentionSettings, checkFlag } from './options.ts';

/** Options of `flashAttention`. */
export interface FlashAttentionOptions extends AttentionOptions {
  /**
   * Whether the same inputs must give the same bits each time, backward too; faster kernels may then be left aside.
   * Default false.
   */
  deterministic?: boolean;
}

const knownOptions = [...attentionOptions, 'deterministic'];

/** Attention's output, and the log-sum-exp of its scores. */
export interface AttentionWithLse {
  /** [batch, heads, queries, head dimension], of the dtype of q. */
  readonly output: Tensor;
  /** Natural logarithms of Σ exp(scale · q·k), [batch, heads, queries]; float32, or float64 of float64. */
  readonly lse: Tensor;
}

/**
 * softmax(scale · q kᵀ + mask) v, without its scores in memory, forward or backward (Dao et al. 2022,
 * "FlashAttention"; Dao 2023, "FlashAttention-2"). q is [batch, heads, queries, d], k and v [batch, keyHeads, keys, d]
 * with d up to 256, of one floating-point dtype and any strides. Where there are fewer heads of k and v, as many
 * neighbouring heads of q share each (Ainslie et al. 2023, grouped-query attention). Gives [batch, heads, queries, d] of
 * their dtype, calculated in float32 (float64 of float64), in the memory layout of v: as [batch, queries, heads, d]
 * where v lies so. A query that sees no key gets zeros.
 *
 * Throws a ShapeError or DTypeError for operands that do not fit together, and a RooflineError (code OPTION) for options
 * that do not exist.
 *
 * @example
 * ```ts
 * import { flashAttention } from '@roofline/flash-attn';
 * import { randn } from '@roofline/tensor-core';
 *
 * const q = randn([1, 2, 16, 8], { seed: 1 });
 * const k = randn([1, 2, 16, 8], { seed: 2 });
 * const v = randn([1, 2, 16, 8], { seed: 3 });
 * console.log(flashAttention(q, k, v, { causal: true }).shape); // [1, 2, 16, 8]
 * ```
 */
export function flashAttention(q: Tensor, k: Tensor, v: Tensor, options: FlashAttentionOptions = {}): Tensor {
  return scope(() => attend('flashAttention', q, k, v, options).output);
}

/**
 * `flashAttention`, and the log-sum-exp of each query's scores, -∞ where it sees no key; both have gradients. Attention
 * over parts of the keys can be joined by it.
 */
export function flashAttentionWithLse(
  q: Tensor,
  k: Tensor,
  v: Tensor,
  options: FlashAttentionOptions = {},
): AttentionWithLse {
  return scope(() => attend('flashAttentionWithLse', q, k, v, options));
}

function attend(
  name: string,
  q: Tensor,
  k: Tensor,
  v: Tensor,
  options: FlashAttentionOptions,
): AttentionWithLse {
  const sizes = checkOperands(name, q, k, v);
  const settings = attentionSettings(name, sizes, options, knownOptions);
  const { deterministic = false } = options;
  checkFlag(name, 'deterministic', deterministic);
  const layout = headLayout(v);
  if (isGradEnabled() && (q.requiresGrad || k.requiresGrad || v.requiresGrad))
    compileBackwardAhead(q, sizes, { ...settings, deterministic });
  const [stored, lse] = apply(flashAttentionOp, [q, k, v], { ...settings, deterministic, layout });
  return { output: swapLayout(stored!, layout), lse: lse! };
}
