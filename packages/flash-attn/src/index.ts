export {
  type AttentionWithLse,
  type FlashAttentionOptions,
  flashAttention,
  flashAttentionWithLse,
} from './flash-attention.ts';
export { type TiledAttentionOptions, tiledAttention } from './tiled-attention.ts';
