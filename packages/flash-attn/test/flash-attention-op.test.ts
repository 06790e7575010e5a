import { type TensorSpec, costOf, observeOps, randn, scope, sum } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { flashAttentionOp } from '../src/flash-attention-op.ts';
import { flashAttention } from '../src/index.ts';

/** Sizes of which no two are equal. */
const [batch, heads, keyHeads, queries, keys, headDimension] = [2, 6, 3, 7, 5, 4];
const attributes = { scale: 1, deterministic: false, layout: 'bhnd' } as const;

describe('flashAttention counts', () => {
  it.each([
    [false, queries * keys],
    // The last five queries see 1 to 5 keys.
    [true, 15],
  ])('the products of each head, and what it reads and writes (causal %s)', (causal, pairs) => {
    const spec = (shape: readonly number[], dtype: TensorSpec['dtype']): TensorSpec => ({
      shape: [...shape],
      dtype,
    });
    const q = spec([batch, heads, queries, headDimension], 'bfloat16');
    const k = spec([batch, keyHeads, keys, headDimension], 'bfloat16');
    const outputs = [q, spec([batch, heads, queries], 'float32'), spec([0], 'float32')];
    const bytes = 2 * (2 * 6 * 7 * 4 * 2 + 2 * (2 * 3 * 5 * 4)) + 4 * (2 * 6 * 7);
    expect(flashAttentionOp.cost!([q, k, k], outputs, { ...attributes, causal })).toEqual({
      flops: 2 * 2 * headDimension * batch * heads * pairs,
      bytesMoved: bytes,
      boundBy: 'tensorCores',
    });
  });

  it('five products of the backward pass for two of the forward pass', () => {
    scope(() => {
      const flops = new Map<string, number>();
      const stop = observeOps({
        before: (op, inputs, outputs, of) =>
          void flops.set(op.name, costOf(op, inputs, outputs, of as never).flops),
      });
      const q = randn([batch, heads, queries, headDimension], { seed: 1 }).requiresGrad_();
      const k = randn([batch, keyHeads, keys, headDimension], { seed: 2 });
      sum(flashAttention(q, k, k, { causal: true })).backward();
      stop();
      expect(flops.get('flashAttention')).toBe(4 * headDimension * batch * heads * 15);
      expect(flops.get('flashAttentionBackward')).toBe(10 * headDimension * batch * heads * 15);
    });
  });
});
