// The products of matmul_split_half.cu on tensor cores: of 64 rows and a tile's columns over one K block.
#ifndef ROOFLINE_TILE_PRODUCTS_CUH
#define ROOFLINE_TILE_PRODUCTS_CUH

#include "hopper.cuh"
#include "tile_shape.cuh"

namespace {

// Advance of a descriptor by 16 along K: within the 128-byte row where K is contiguous, else 16 rows down.
constexpr int kStepA = (TRANS_A ? 16 * 128 : 32) >> 4;
constexpr int kStepB = (TRANS_B ? 32 : 16 * 128) >> 4;

#define REGISTERS_8(x, i) \
  "+f"(x[i]), "+f"(x[i + 1]), "+f"(x[i + 2]), "+f"(x[i + 3]), "+f"(x[i + 4]), "+f"(x[i + 5]), "+f"(x[i + 6]), "+f"(x[i + 7])
#define REGISTERS_32(x, i) REGISTERS_8(x, i), REGISTERS_8(x, i + 8), REGISTERS_8(x, i + 16), REGISTERS_8(x, i + 24)

/** sum = (accumulate ? sum : 0) + A·B over 16 of K; asynchronous. */
__device__ __forceinline__ void multiply_step(float (&sum)[kAccumulators], unsigned long long a, unsigned long long b,
                                              int accumulate) {
#if BLOCK_N == 128
  asm volatile(
      "{\n .reg .pred p;\n setp.ne.b32 p, %66, 0;\n"
      " wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,"
      "%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,"
      "%56,%57,%58,%59,%60,%61,%62,%63}, %64, %65, p, 1, 1, %67, %68;\n}"
      : REGISTERS_32(sum, 0), REGISTERS_32(sum, 32)
      : "l"(a), "l"(b), "r"(accumulate), "n"(TRANS_A), "n"(1 - TRANS_B));
#else
  static_assert(BLOCK_N == 64, "BLOCK_N is 64 or 128");
  asm volatile(
      "{\n .reg .pred p;\n setp.ne.b32 p, %34, 0;\n"
      " wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,"
      "%29,%30,%31}, %32, %33, p, 1, 1, %35, %36;\n}"
      : REGISTERS_32(sum, 0)
      : "l"(a), "l"(b), "r"(accumulate), "n"(TRANS_A), "n"(1 - TRANS_B));
#endif
}

/** sum = (accumulate ? sum : 0) + A·B over one K block; asynchronous. */
__device__ __forceinline__ void multiply_block(float (&sum)[kAccumulators], unsigned long long a, unsigned long long b,
                                               bool accumulate) {
#pragma unroll
  for (int step = 0; step < kBlock / 16; step++) {
    multiply_step(sum, a + step * kStepA, b + step * kStepB, accumulate || step > 0);
  }
}

/** Starts Ahi·Bhi of the stage at `a`, `b`. */
__device__ __forceinline__ void start_main(float (&sum)[kAccumulators], unsigned a, unsigned b) {
  multiply_fence();
  multiply_block(sum, matrix_descriptor<kBoxBytes>(a), matrix_descriptor<kBoxBytes>(b), false);
  multiply_commit();
}

/** Starts Ahi·Blo + Alo·Bhi. */
__device__ __forceinline__ void start_cross(float (&sum)[kAccumulators], unsigned a, unsigned b) {
  multiply_fence();
  multiply_block(sum, matrix_descriptor<kBoxBytes>(a), matrix_descriptor<kBoxBytes>(b + kPlaneBytesB), false);
  multiply_block(sum, matrix_descriptor<kBoxBytes>(a + kPlaneBytesA), matrix_descriptor<kBoxBytes>(b), true);
  multiply_commit();
}

}  // namespace

#endif
