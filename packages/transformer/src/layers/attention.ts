import {
  RooflineError,
  ShapeError,
  type Tensor,
  causalMask,
  checkCount,
  checkFlag,
  checkFunction,
  checkNumber,
  checkOptions,
  describeValue,
  formatShape,
  matmul,
  range,
  requireTensor,
  requireTensors,
  reshape,
  scope,
  softmax,
  transpose,
  view,
  where,
} from '@roofline/tensor-core';
import type { AttentionCache } from '../generation/key-value-cache.ts';
import { Linear } from './linear.ts';
import { Module } from '../module/module.ts';
import { type ParameterOptions, checkParameterOptions } from '../module/parameter.ts';
import { RotaryEmbedding } from './rope.ts';

/** What a layer asks of its attention. */
export interface AttentionSettings {
  /** Whether query i sees only the keys j <= i + S - T, as in `causalMask`: the last query sees every key. */
  readonly causal: boolean;
  /** What products of queries and keys are multiplied by. */
  readonly scale: number;
}

/**
 * Attention over heads: queries [B, H, T, d], keys and values [B, H, S, d], possibly strided views, to [B, H, T, d].
 * S is T, or more where a cache holds earlier positions.
 */
export type AttentionFunction = (q: Tensor, k: Tensor, v: Tensor, settings: AttentionSettings) => Tensor;

/**
 * softmax(scale · q kᵀ + mask) v in separate ops (Vaswani et al. 2017), each in a range of its own. Scores are
 * T · S numbers a head, so each form of them is freed as soon as the next one exists. In low precision, softmax is
 * calculated in float32 and rounded to what the product with the values takes.
 */
export const plainAttention: AttentionFunction = (q, k, v, settings) => {
  requireTensors('plainAttention', [q, k, v]);
  checkOptions('plainAttention', settings, ['causal', 'scale']);
  const { causal, scale } = settings;
  checkFlag('plainAttention', 'causal', causal);
  checkNumber('plainAttention', 'scale', scale);
  return attend(q, k, v, scale, causal ? causalMask : null);
};

/** The same of the keys that are visible, [S] bool, to every query. */
function attendTo(visible: Tensor, q: Tensor, k: Tensor, v: Tensor, scale: number): Tensor {
  return attend(q, k, v, scale, (scores) => where(visible, scores, -Infinity));
}

function attend(
  q: Tensor,
  k: Tensor,
  v: Tensor,
  scale: number,
  mask: ((scores: Tensor) => Tensor) | null,
): Tensor {
  const scores = range('attention.scores', () => matmul(q, transpose(k), { scale }));
  const seen = mask ? range('attention.mask', () => mask(scores)) : scores;
  if (seen !== scores) scores.dispose();
  const weights = range('attention.softmax', () => softmax(seen, -1, { dtype: v.dtype }));
  seen.dispose();
  return range('attention.values', () => matmul(weights, v));
}

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

/** Throws a RooflineError (code ARGUMENT) for what keeps no keys and values, such as the cache of a whole model. */
function checkCache(cache: AttentionCache): void {
  if (typeof (cache as AttentionCache | null)?.append === 'function') return;
  throw new RooflineError(
    'ARGUMENT',
    `CausalSelfAttention: the cache must be the part of a layer, as cache.layer(0), not ${describeValue(cache)}.`,
  );
}

/**
 * Multi-head self-attention with rotary positions in which no token sees a later one: [B, T, d] -> [B, T, d]. With
 * a cache, x are the tokens after those that it holds, which they see too.
 */
export class CausalSelfAttention extends Module<[x: Tensor, cache?: AttentionCache], Tensor> {
  readonly qProj: Linear;
  readonly kProj: Linear;
  readonly vProj: Linear;
  readonly outputProj: Linear;
  readonly #heads: number;
  readonly #positions: RotaryEmbedding;
  readonly #attention: AttentionFunction;
  readonly #settings: AttentionSettings;

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
    this.#settings = { causal: true, scale: 1 / Math.sqrt(modelDimension / heads) };
  }

  protected override compute(x: Tensor, cache?: AttentionCache): Tensor {
    requireTensor('CausalSelfAttention', x);
    if (x.rank !== 3)
      throw new ShapeError(`CausalSelfAttention: x must be [batch, tokens, d], not ${formatShape(x.shape)}.`);
    if (cache !== undefined) checkCache(cache);
    const position = cache?.position ?? 0;
    const q = this.#turnedHeads(this.qProj, x, position);
    const k = this.#turnedHeads(this.kProj, x, position);
    const v = this.#splitHeads(this.vProj.forward(x));
    const { keys, values, visible } = cache?.append(k, v) ?? { keys: k, values: v };
    const attended = visible
      ? attendTo(visible, q, keys, values, this.#settings.scale)
      : this.#attention(q, keys, values, this.#settings);
    return this.outputProj.forward(reshape(transpose(attended, 1, 2), x.shape));
  }

  // In a scope of its own: what it was before it was turned is not needed along with the scores.
  #turnedHeads(projection: Linear, x: Tensor, position: number | Tensor): Tensor {
    return scope(() => this.#positions.apply(this.#splitHeads(projection.forward(x)), position));
  }

  // [B, T, d] seen as [B, heads, T, d / heads], without a copy.
  #splitHeads(x: Tensor): Tensor {
    const [batch, length, dimension] = x.shape as [number, number, number];
    return transpose(view(x, [batch, length, this.#heads, dimension / this.#heads]), 1, 2);
  }
}
