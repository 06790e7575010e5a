import { flashAttention, tiledAttention } from '@roofline/flash-attn';
import { range } from '@roofline/tensor-core';
import { plainAttention, type AttentionFunction } from '@roofline/transformer';
import type { AttentionKind } from './kinds.ts';

/** Each in ranges `attention.*`: plain attention brings its own. */
const functions: Readonly<Record<AttentionKind, AttentionFunction>> = {
  plain: plainAttention,
  flash: (q, k, v, settings) => range('attention.flash', () => flashAttention(q, k, v, settings)),
  tiled: (q, k, v, settings) => range('attention.tiled', () => tiledAttention(q, k, v, settings)),
};

export function attentionFunction(kind: AttentionKind): AttentionFunction {
  return functions[kind];
}
