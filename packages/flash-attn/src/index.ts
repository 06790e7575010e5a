export {
  type AttentionWithLse,
  type FlashAttentionOptions,
  flashAttention,
  flashAttentionWithLse,
} from './flash-attention.ts';
export type { AttentionOptions } from './options.ts';
export { type TiledAttentionOptions, tiledAttention } from './tiled-attention.ts';
