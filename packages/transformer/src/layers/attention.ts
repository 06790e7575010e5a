import {
  RooflineError,
  ShapeError,
  type Tensor,
  checkCount,
  checkFlag,
  checkFunction,
  checkNumber,
  checkOptions,
  concat,
  describeValue,
  formatShape,
  matmul,
  range,
  requireTensor,
  requireTensors,
  reshape,
  scope,
  slice,
  softmax,
  transpose,
  unsqueeze,
  view,
  where,
  zeros,
} from '@roofline/tensor-core';
import type { AttentionCache, KeysAndValues } from '../generation/key-value-cache.ts';
import { type AttentionBias, attentionBiases } from './attention-bias.ts';
import type { AttentionFunction, AttentionSettings } from './attention-function.ts';
import { checkEpsilon } from './block-kinds.ts';
import { Linear } from './linear.ts';
import { Module } from '../module/module.ts';
import { type ParameterOptions, checkParameterOptions } from '../module/parameter.ts';
import { RMSNorm } from './rms-norm.ts';
import { RotaryEmbedding } from './rope.ts';
import { visibleWithin, windowMask, withinWindow } from './sliding-window.ts';

/**
 * softmax(scale · q kᵀ + mask) v in separate ops (Vaswani et al. 2017), each in a range of its own; softmax leaves out what a causal
 * mask hides. Scores are T · S numbers a head, so each form of them is freed as soon as the next one exists. In low precision, softmax is
 * calculated in float32 and rounded to what the product with the values takes.
 */
export const plainAttention: AttentionFunction = (q, k, v, settings) => {
  requireTensors('plainAttention', [q, k, v]);
  checkOptions('plainAttention', settings, ['causal', 'scale', 'window']);
  const { causal, scale, window } = settings;
  checkFlag('plainAttention', 'causal', causal);
  checkNumber('plainAttention', 'scale', scale);
  if (window === undefined) return attend(q, k, v, scale, causal ? { causal } : {});
  checkCount('plainAttention', 'window', window, 1);
  if (!causal) throw new RooflineError('OPTION', 'plainAttention: a window needs causal: true.');
  return attend(q, k, v, scale, { causal, within: windowMask(window, q.shape[2]!, k.shape[2]!, q) });
};

/** The same of the keys that are visible, [S] or [B, S] bool, to every query. */
function attendTo(visible: Tensor, q: Tensor, k: Tensor, v: Tensor, scale: number): Tensor {
  return attend(q, k, v, scale, { visible });
}

/** Attention of each sequence by itself, without the tokens that fill it up, which get zeros. */
function attendUnpadded(
  attention: AttentionFunction,
  padding: readonly number[],
  [q, k, v]: readonly [Tensor, Tensor, Tensor],
  settings: AttentionSettings,
): Tensor {
  const [, heads, length, dimension] = q.shape as [number, number, number, number];
  const before = k.shape[2]! - length;
  const { dtype, device } = v;
  const rows = padding.map((count, row) => {
    const [one, others] = [
      (x: Tensor) => slice(x, 0, row, row + 1),
      (x: Tensor, from: number) => slice(x, 2, from),
    ];
    const hidden = Math.min(Math.max(count - before, 0), length);
    const none = zeros([1, heads, hidden, dimension], { dtype, device });
    if (hidden === length) return none;
    const seen = attention(others(one(q), hidden), others(one(k), count), others(one(v), count), settings);
    return hidden === 0 ? seen : concat([none, seen], 2);
  });
  return concat(rows, 0);
}

/** Which keys are seen, all conditions together. */
interface Mask {
  /** Those up to a query's own place, which softmax leaves out by itself. */
  readonly causal?: boolean;
  /** Those within a query's window, [T, S] bool. */
  readonly within?: Tensor;
  /** Those visible to every query, [S] or [B, S] bool. */
  readonly visible?: Tensor;
}

function attend(q: Tensor, k: Tensor, v: Tensor, scale: number, mask: Mask): Tensor {
  const shared = k.shape[1]!;
  if (q.shape[1] !== shared && q.shape[1]! % shared === 0) {
    const [batch, heads, ...rest] = q.shape as [number, number, number, number];
    const grouped = view(q, [batch, shared, heads / shared, ...rest]);
    return view(attend(grouped, unsqueeze(k, 2), unsqueeze(v, 2), scale, mask), q.shape);
  }
  const scores = range('attention.scores', () => matmul(q, transpose(k), { scale }));
  const { causal = false, visible, within } = mask;
  const kept = visible === undefined ? within : ofScores(visible, scores);
  const seen = kept === undefined ? scores : range('attention.mask', () => where(kept, scores, -Infinity));
  if (seen !== scores) scores.dispose();
  const weights = range('attention.softmax', () => softmax(seen, -1, { dtype: v.dtype, causal }));
  seen.dispose();
  return range('attention.values', () => matmul(weights, v));
}

/** Keys visible to all queries, [S] or [B, S], as they are for scores of several heads, [B, …, T, S]. */
function ofScores(visible: Tensor, scores: Tensor): Tensor {
  if (visible.rank === 1) return visible;
  const [batch, keys] = visible.shape as [number, number];
  return view(visible, [batch, ...scores.shape.slice(1, -1).map(() => 1), keys]);
}

export interface AttentionOptions extends ParameterOptions {
  readonly modelDimension: number;
  readonly heads: number;
  /** Heads of keys and values, each shared by heads / keyValueHeads of queries. Default `heads`. */
  readonly keyValueHeads?: number;
  /** Default modelDimension / heads. */
  readonly headDimension?: number;
  /** Which products have biases. Default `none`. */
  readonly bias?: AttentionBias;
  /** What queries and keys of each head pass before they are turned, an RMSNorm of this epsilon; null for nothing. Default null. */
  readonly queryKeyNormEpsilon?: number | null;
  /** What queries and keys are turned by; null where the embeddings hold the positions. */
  readonly positions: RotaryEmbedding | null;
  /** Default `plainAttention`. */
  readonly attention?: AttentionFunction;
  /** How many tokens a token sees, itself and those before it; null for all. Default null. */
  readonly window?: number | null;
}

/** Throws, in the name of `owner`, unless attention can be built of `options`; `more` names those of others. */
export function checkAttentionOptions(
  owner: string,
  options: AttentionOptions,
  more: readonly string[] = [],
): void {
  const known = ['modelDimension', 'heads', 'keyValueHeads', 'headDimension', 'bias', 'queryKeyNormEpsilon'];
  checkParameterOptions(owner, options, [...known, 'positions', 'attention', 'window', ...more]);
  const { modelDimension, heads, positions, attention, keyValueHeads = heads, headDimension, bias } = options;
  checkCount(owner, 'modelDimension', modelDimension, 1);
  checkCount(owner, 'heads', heads, 1);
  checkCount(owner, 'keyValueHeads', keyValueHeads, 1);
  if (headDimension !== undefined) checkCount(owner, 'headDimension', headDimension, 1);
  const { queryKeyNormEpsilon: epsilon = null } = options;
  if (epsilon !== null) checkEpsilon(owner, 'queryKeyNormEpsilon', epsilon);
  if (heads % keyValueHeads !== 0) {
    throw new RooflineError(
      'RANGE',
      `${owner}: heads ${heads} must be a multiple of keyValueHeads ${keyValueHeads}.`,
    );
  }
  if (bias !== undefined && !attentionBiases.includes(bias)) {
    throw new RooflineError(
      'OPTION',
      `${owner}: bias must be ${attentionBiases.join(', ')}, not ${describeValue(bias)}.`,
    );
  }
  if (headDimension === undefined && modelDimension % heads !== 0) {
    throw new RooflineError(
      'RANGE',
      `${owner}: modelDimension ${modelDimension} must be a multiple of heads ${heads}.`,
    );
  }
  if (positions !== null && !(positions instanceof RotaryEmbedding)) {
    throw new RooflineError(
      'ARGUMENT',
      `${owner}: positions must be a RotaryEmbedding or null, not ${describeValue(positions)}.`,
    );
  }
  if (attention !== undefined) checkFunction(owner, 'attention', attention);
  if ((options.window ?? null) !== null) checkCount(owner, 'window', options.window!, 1);
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
 * Multi-head self-attention in which no token sees a later one, nor one before its window: [B, T, d] -> [B, T, d]. With a cache, x are the tokens after those
 * that it holds, which they see too.
 */
export class CausalSelfAttention extends Module<[x: Tensor, cache?: AttentionCache], Tensor> {
  readonly qProj: Linear;
  readonly kProj: Linear;
  readonly vProj: Linear;
  readonly outputProj: Linear;
  /** Null where queries and keys are turned as they come. */
  readonly qNorm: RMSNorm | null;
  readonly kNorm: RMSNorm | null;
  readonly #headDimension: number;
  readonly #positions: RotaryEmbedding | null;
  readonly #attention: AttentionFunction;
  readonly #window: number | null;
  readonly #settings: AttentionSettings;

  constructor(attentionOptions: AttentionOptions) {
    super();
    checkAttentionOptions('CausalSelfAttention', attentionOptions);
    const { modelDimension, heads, positions, attention = plainAttention, ...others } = attentionOptions;
    const { keyValueHeads = heads, headDimension = modelDimension / heads, ...rest } = others;
    const { bias = 'none', queryKeyNormEpsilon: epsilon = null, window = null, ...options } = rest;
    const into = (count: number) =>
      new Linear(modelDimension, count * headDimension, { ...options, bias: bias !== 'none' });
    this.qProj = into(heads);
    this.kProj = into(keyValueHeads);
    this.vProj = into(keyValueHeads);
    this.outputProj = new Linear(heads * headDimension, modelDimension, { ...options, bias: bias === 'all' });
    const { device, dtype } = options;
    const norm = () => (epsilon === null ? null : new RMSNorm(headDimension, { device, dtype }, epsilon));
    this.qNorm = norm();
    this.kNorm = norm();
    this.#headDimension = headDimension;
    this.#positions = positions;
    this.#window = window;
    this.#attention = window === null ? attention : withinWindow(attention, window);
    this.#settings = { causal: true, scale: 1 / Math.sqrt(headDimension) };
  }

  protected override compute(x: Tensor, cache?: AttentionCache): Tensor {
    requireTensor('CausalSelfAttention', x);
    if (x.rank !== 3)
      throw new ShapeError(`CausalSelfAttention: x must be [batch, tokens, d], not ${formatShape(x.shape)}.`);
    if (cache !== undefined) checkCache(cache);
    const position = cache?.position ?? 0;
    const q = this.#turnedHeads(this.qProj, this.qNorm, x, position);
    const k = this.#turnedHeads(this.kProj, this.kNorm, x, position);
    const v = this.#headsOf(this.vProj, null, x);
    const attended = this.#attended(q, cache?.append(k, v) ?? { keys: k, values: v }, position);
    const merged = [...x.shape.slice(0, 2), this.outputProj.weight.shape[1]!];
    return this.outputProj.forward(reshape(transpose(attended, 1, 2), merged));
  }

  #attended(q: Tensor, stored: KeysAndValues, position: number | Tensor): Tensor {
    const { keys, values, visible, padding } = stored;
    if (visible !== undefined) {
      const given = { keys, values, visible };
      const seen = this.#window === null ? given : visibleWithin(this.#window, given, position);
      return attendTo(seen.visible, q, seen.keys, seen.values, this.#settings.scale);
    }
    if (padding === undefined) return this.#attention(q, keys, values, this.#settings);
    return scope(() => attendUnpadded(this.#attention, padding, [q, keys, values], this.#settings));
  }

  // In a scope of its own: what it was before it was turned is not needed along with the scores.
  #turnedHeads(projection: Linear, norm: RMSNorm | null, x: Tensor, position: number | Tensor): Tensor {
    return scope(() => {
      const heads = this.#headsOf(projection, norm, x);
      return this.#positions === null ? heads : this.#positions.apply(heads, position);
    });
  }

  // [B, T, heads · d] seen as [B, heads, T, d], without a copy; the norm reads it while it is dense.
  #headsOf(projection: Linear, norm: RMSNorm | null, x: Tensor): Tensor {
    const projected = projection.forward(x);
    const [batch, length, features] = projected.shape as [number, number, number];
    const heads = view(projected, [batch, length, features / this.#headDimension, this.#headDimension]);
    return transpose(norm === null ? heads : norm.forward(heads), 1, 2);
  }
}
