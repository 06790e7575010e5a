export { type AttentionPart, flashAttentionParts } from './attention-parts.ts';
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
export { type FlashTile, getFlashTile, setFlashTile } from './cuda/flash-tile.ts';
export { type FlashTileKernel, flashTileKernel } from './flash-tile-kernel.ts';
export { type FlashKernels, getFlashKernels, setFlashKernels } from './cuda/flash-kernels.ts';
