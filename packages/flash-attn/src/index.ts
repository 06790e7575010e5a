export {
  type AttentionWithLse,
  type FlashAttentionOptions,
  flashAttention,
  flashAttentionWithLse,
} from './flash-attention.ts';
export {
  type FlashAttentionGpu,
  type FlashAttentionShapes,
  flashAttentionKernels,
} from './flash-attention-kernels.ts';
export { type TiledAttentionOptions, tiledAttention } from './tiled-attention.ts';
export { type FlashKernels, getFlashKernels, setFlashKernels } from './cuda/flash-kernels.ts';
