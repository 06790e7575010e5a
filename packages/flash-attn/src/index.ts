export {
  type AttentionWithLse,
  type FlashAttentionOptions,
  flashAttention,
  flashAttentionWithLse,
} from './flash-attention.ts';
export { type TiledAttentionOptions, tiledAttention } from './tiled-attention.ts';
export { type FlashKernels, getFlashKernels, setFlashKernels } from './cuda/flash-kernels.ts';
