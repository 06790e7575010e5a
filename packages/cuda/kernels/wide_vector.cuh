// Vectors of any power-of-two length, loaded and stored 16 bytes at a time.
#ifndef ROOFLINE_WIDE_VECTOR_CUH
#define ROOFLINE_WIDE_VECTOR_CUH

#include "prelude.cuh"

template <typename T, int N>
struct WideVector {
  static constexpr int kPart = N < kVectorLength<T> ? N : kVectorLength<T>;
  Vector<T, kPart> parts[N / kPart];
  __device__ __forceinline__ T& operator[](int i) { return parts[i / kPart][i % kPart]; }
};

/** `address` must be aligned to 16 bytes, or to all of the vector where that is shorter. */
template <int N, typename T>
__device__ __forceinline__ WideVector<T, N> load_wide(const T* address) {
  constexpr int kPart = WideVector<T, N>::kPart;
  WideVector<T, N> vector;
#pragma unroll
  for (int i = 0; i < N / kPart; i++) vector.parts[i] = load_vector<kPart>(address + i * kPart);
  return vector;
}

template <int N, typename T>
__device__ __forceinline__ void store_wide(T* address, const WideVector<T, N>& vector) {
  constexpr int kPart = WideVector<T, N>::kPart;
#pragma unroll
  for (int i = 0; i < N / kPart; i++) store_vector(address + i * kPart, vector.parts[i]);
}

#endif
