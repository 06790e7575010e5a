/** What PyTorch, CUDA and papers call dtypes. */
export const dtypeSynonyms = {
  fp32: 'float32',
  f32: 'float32',
  fp16: 'float16',
  f16: 'float16',
  half: 'float16',
  bf16: 'bfloat16',
} as const;
