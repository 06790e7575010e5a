/** The attentions of PyTorch that python/torch_attention.py times, and what tables call them. */
export const torchAttentions = {
  plain: 'PyTorch plain',
  compiled: 'PyTorch compiled',
  flash: 'PyTorch FlashAttention',
  cudnn: 'PyTorch cuDNN',
} as const;
export type TorchAttention = keyof typeof torchAttentions;

export const torchAttentionNames = Object.keys(torchAttentions) as [TorchAttention, ...TorchAttention[]];
