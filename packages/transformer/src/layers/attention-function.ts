import type { Tensor } from '@roofline/tensor-core';

/** What a layer asks of its attention. */
export interface AttentionSettings {
  /** Whether query i sees only the keys j <= i + S - T, as in `causalMask`: the last query sees every key. */
  readonly causal: boolean;
  /** What products of queries and keys are multiplied by. */
  readonly scale: number;
  /**
   * How many keys a query sees at most, itself and those before it: keys j > i + S - T - window. Only causal attention of fewer than S keys is
   * asked for it; one that has none must throw.
   */
  readonly window?: number;
}

/**
 * Attention over heads: queries [B, H, T, d], keys and values [B, K, S, d], possibly strided views, to [B, H, T, d].
 * S is T, or more where a cache holds earlier positions. K is H, or a divisor of it: then H / K neighbouring heads of queries share one
 * of keys and values.
 */
export type AttentionFunction = (q: Tensor, k: Tensor, v: Tensor, settings: AttentionSettings) => Tensor;
