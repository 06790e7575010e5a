// What kernels of counter-based random numbers have in common: Philox4x32-10 (Salmon et al. 2011). The same bits as
// src/tensor/random/ makes on the host: integers, and float64 arithmetic rounded after each operation (no contraction,
// no library function).
//
//          y: ELEMENT [count], rounded from float64; count and offset int64, seed halves uint32, bits int32, the
//          rest float64. Element i is word i mod 4 of the block of counter offset + ⌊i / 4⌋ under the key `seed`.
//            any grid and block
//   macros ELEMENT
// Bound by memory where float64 runs at half the rate of float32, else by arithmetic.
#ifndef ROOFLINE_RANDOM_CUH
#define ROOFLINE_RANDOM_CUH

#include "philox.cuh"

using Element = ELEMENT;

/** Writes value(word) to each element. */
template <typename Value>
__device__ __forceinline__ void fill(Element* y, int64 count, uint32 key0, uint32 key1, int64 offset, Value value) {
  const int64 step = static_cast<int64>(gridDim.x) * blockDim.x;
  for (int64 block = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; block * 4 < count; block += step) {
    const Words words = philox(static_cast<uint64>(offset + block), key0, key1);
#pragma unroll
    for (int i = 0; i < 4; i++) {
      if (block * 4 + i < count) y[block * 4 + i] = convert<Element>(value(words.values[i]));
    }
  }
}

__device__ __forceinline__ double madd(double a, double b, double c) { return __dadd_rn(__dmul_rn(a, b), c); }

constexpr double kWordUnit = 1.0 / 4294967296.0;

#endif
