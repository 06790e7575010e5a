import { expect, it } from 'vitest';
import { shortSymbol } from '../../src/text/short-symbol.ts';

it.each([
  [
    'void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul> >(int, at::native::BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul>)',
    'vectorized_elementwise_kernel<BinaryFunctor<MulFunctor>>',
  ],
  [
    'void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda()#7}::operator()() const::{lambda(float)#1}, std::array<char*, 2ul>, 4, TrivialOffsetCalculator<1, unsigned int>>(int)',
    'unrolled_elementwise_kernel<direct_copy_kernel_cuda>',
  ],
  [
    'void cutlass::Kernel2<cutlass_80_simt_sgemm_128x256_8x4_nt_align1>(cutlass_80_simt_sgemm_128x256_8x4_nt_align1::Params)',
    'Kernel2<cutlass_80_simt_sgemm_128x256_8x4_nt_align1>',
  ],
  ['gemm', 'gemm'],
  ['[CUDA memcpy DtoH]', '[CUDA memcpy DtoH]'],
  ['small, context 256 (float32)', 'small, context 256 (float32)'],
  ['a < b and c > d', 'a < b and c > d'],
  ['void f<int>(float)', 'f'],
])('%s', (name, short) => {
  expect(shortSymbol(name).length).toBeLessThanOrEqual(60);
  expect(shortSymbol(name)).toBe(short);
});
