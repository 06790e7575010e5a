/**
 * Ways to attend: `plain` in separate ops, which keep every weight; `flash` by the op of @roofline/flash-attn, which
 * keeps none; `tiled` by the same algorithm in ops of tensor-core.
 */
export const attentionKinds = ['plain', 'flash', 'tiled'] as const;
export type AttentionKind = (typeof attentionKinds)[number];

/** Those that a model is timed with. */
export const modelAttentions = ['plain', 'flash'] as const satisfies readonly AttentionKind[];
export type ModelAttention = (typeof modelAttentions)[number];

/**
 * Those of each peer's model, the usual one first. In PyTorch separate ops, or `scaled_dot_product_attention`, which chooses its
 * kernel itself; in JAX `dot_product_attention`, by cuDNN where that has the dtype.
 */
export const attentionsOf = { torch: ['plain', 'sdpa'], jax: ['dot-product'] } as const;
export const peerAttentions = [...attentionsOf.torch, ...attentionsOf.jax] as const;
export type PeerAttention = (typeof peerAttentions)[number];
