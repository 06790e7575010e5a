import {
  RooflineError,
  type Tensor,
  causalMask,
  checkCount,
  checkFunction,
  checkGenerator,
  describeValue,
  matmul,
  range,
  requireTensors,
  reshape,
  scope,
  softmax,
  transpose,
  view,
} from '@roofline/tensor-core';
import type { LayerCache } from './key-value-cache.ts';
import { Linear } from './linear.ts';
import { Module } from './module.ts';
import { type ParameterOptions, checkParameterOptions } from './parameter.ts';
import { RotaryEmbedding } from './rope.ts';

/**
 * Causal attention over heads: queries [B, H, T, d], keys and values [B, H, S, d], possibly strided views, to
 * [B, H, T, d]. The scale 1/√d is the function's own duty. S is T, or more where a cache holds earlier positions:
 * the last query then sees every key, as in `causalMask`.
 */
export type AttentionFunction = (q: Tensor, k: Tensor, v: Tensor) => Tensor;

/**
 * softmax(q kᵀ / √d + mask) v in separate ops (Vaswani et al. 2017), each in a range of its own. Scores are
 * T · S numbers a head, so each form of them is freed as soon as the next one exists. In low precision, softmax is
 * calculated in float32 and rounded to what the product with the values takes.
 */
export const plainAttention: AttentionFunction = (q, k, v) => {
  requireTensors('plainAttention', [q, k, v]);
  const scale = 1 / Math.sqrt(q.shape.at(-1)!);
  const scores = range('attention.scores', () => matmul(q, transpose(k), { scale }));
  const masked = range('attention.mask', () => causalMask(scores));
  scores.dispose();
  const weights = range('attention.softmax', () => softmax(masked, -1, { dtype: v.dtype }));
  masked.dispose();
  return range('attention.values', () => matmul(weights, v));
};

export interface AttentionOptions extends ParameterOptions {
  readonly modelDimension: number;
  readonly heads: number;
  readonly positions: RotaryEmbedding;
  /** Default `plainAttention`. */
  readonly attention?: AttentionFunction;
}

/** Throws, in the name of `owner`, unless attention can be built of `options`; `more` names those of others. */
export function checkAttentionOptions(
  owner: string,
  options: AttentionOptions,
  more: readonly string[] = [],
): void {
  const known = ['modelDimension', 'heads', 'positions', 'attention', ...more];
  checkParameterOptions(owner, options, known);
  checkGenerator(owner, options.generator);
  const { modelDimension, heads, positions, attention } = options;
  checkCount(owner, 'modelDimension', modelDimension, 1);
  checkCount(owner, 'heads', heads, 1);
  if (modelDimension % heads !== 0) {
    throw new RooflineError(
      'RANGE',
      `${owner}: modelDimension ${modelDimension} must be a multiple of heads ${heads}.`,
    );
  }
  if (!(positions instanceof RotaryEmbedding)) {
    throw new RooflineError(
      'ARGUMENT',
      `${owner}: positions must be a RotaryEmbedding, not ${describeValue(positions)}.`,
    );
  }
  if (attention !== undefined) checkFunction(owner, 'attention', attention);
}

/**
 * Multi-head self-attention with rotary positions in which no token sees a later one: [B, T, d] -> [B, T, d]. With
 * a cache, x are the tokens behind those that it holds, which they see too.
 */
export class CausalSelfAttention extends Module<[x: Tensor, cache?: LayerCache], Tensor> {
  readonly qProj: Linear;
  readonly kProj: Linear;
  readonly vProj: Linear;
  readonly outputProj: Linear;
  readonly #heads: number;
  readonly #positions: RotaryEmbedding;
  readonly #attention: AttentionFunction;

  constructor(attentionOptions: AttentionOptions) {
    super();
    checkAttentionOptions('CausalSelfAttention', attentionOptions);
    const { modelDimension, heads, positions, attention = plainAttention, ...options } = attentionOptions;
    const projection = () => new Linear(modelDimension, modelDimension, options);
    this.qProj = projection();
    this.kProj = projection();
    this.vProj = projection();
    this.outputProj = projection();
    this.#heads = heads;
    this.#positions = positions;
    this.#attention = attention;
  }

  protected override compute(x: Tensor, cache?: LayerCache): Tensor {
    const position = cache?.position ?? 0;
    const q = this.#turnedHeads(this.qProj, x, position);
    const k = this.#turnedHeads(this.kProj, x, position);
    const v = this.#splitHeads(this.vProj.forward(x));
    const { keys, values } = cache?.append(k, v) ?? { keys: k, values: v };
    const merged = reshape(transpose(this.#attention(q, keys, values), 1, 2), x.shape);
    return this.outputProj.forward(merged);
  }

  // In a scope of its own: what it was before it was turned is not needed beside the scores.
  #turnedHeads(projection: Linear, x: Tensor, position: number): Tensor {
    return scope(() => this.#positions.apply(this.#splitHeads(projection.forward(x)), position));
  }

  // [B, T, d] seen as [B, heads, T, d / heads], without a copy.
  #splitHeads(x: Tensor): Tensor {
    const [batch, length, dimension] = x.shape as [number, number, number];
    return transpose(view(x, [batch, length, this.#heads, dimension / this.#heads]), 1, 2);
  }
}
