// No prologue and no epilogue: an input is loaded, and an output stored, as it is; see fusion.cuh.
#ifndef ROOFLINE_NO_FUSION_CUH
#define ROOFLINE_NO_FUSION_CUH

#include "prelude.cuh"

struct NoPrologue {
  template <int N, typename Stored>
  __device__ __forceinline__ Vector<Stored, N> load(const Stored* address, int64 at, int) const {
    return load_vector<N>(address + at);
  }
};

struct NoEpilogue {
  template <int N>
  struct Loaded {};

  template <int N>
  __device__ __forceinline__ Loaded<N> load(int64, int) const {
    return {};
  }

  template <int N, typename Stored>
  __device__ __forceinline__ void store(Stored* address, int64 at, const Loaded<N>&, const compute_t<Stored> (&x)[N]) const {
    Vector<Stored, N> vector;
#pragma unroll
    for (int i = 0; i < N; i++) vector[i] = convert<Stored>(x[i]);
    store_vector(address + at, vector);
  }
};

#endif
