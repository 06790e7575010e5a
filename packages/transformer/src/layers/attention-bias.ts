export const attentionBiases = ['none', 'query-key-value', 'all'] as const;
/** Which products of attention have biases: none, those of queries, keys and values as in Qwen2, or all as in GPT-2. */
export type AttentionBias = (typeof attentionBiases)[number];
