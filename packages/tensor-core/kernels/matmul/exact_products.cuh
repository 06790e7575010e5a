// The K blocks for which matmul_split_half.cu multiplies the float32 operands themselves.
#ifndef ROOFLINE_EXACT_PRODUCTS_CUH
#define ROOFLINE_EXACT_PRODUCTS_CUH

#include "promotion.cuh"

namespace {

/**
 * What one warp multiplies exactly over four steps of K: its 16 rows of A and 64 columns of B, element by element from the
 * float32 operands. Lanes hold them in the order that reads memory best; a lane that needs an element gets it by a shuffle.
 */
struct ExactOperands {
  static constexpr int kDepth = 4;
  static constexpr int kOfA = 16 * kDepth / 32, kOfB = 64 * kDepth / 32;
  float a[kOfA], b[kOfB];

  /** From k on; `row` and `column` are the first of the warp's. Elements past the end of K are zero. */
  __device__ __forceinline__ ExactOperands(const MatmulParams& p, int batch, int row, int column, int k) {
    const int lane = threadIdx.x % 32;
    const float* sourceA = p.sourceA + batch * p.batchStrideA;
    const float* sourceB = p.sourceB + batch * p.batchStrideB;
    // Results of rows and columns past the end are never written, so any existing ones will do.
#pragma unroll
    for (int i = 0; i < kOfA; i++) {
      const int at = lane + 32 * i, depth = k + (TRANS_A ? at / 16 : at % kDepth);
      const int m = min(row + (TRANS_A ? at % 16 : at / kDepth), p.m - 1);
      a[i] = depth < p.k ? __ldg(sourceA + element(m, depth, p.pitchA, TRANS_A)) : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < kOfB; i++) {
      const int at = lane + 32 * i, depth = k + (TRANS_B ? at % kDepth : at / 64);
      const int n = min(column + (TRANS_B ? at / kDepth : at % 64), p.n - 1);
      b[i] = depth < p.k ? __ldg(sourceB + element(n, depth, p.pitchB, !TRANS_B)) : 0.0f;
    }
  }
  __device__ static __forceinline__ long long element(int line, int depth, int pitch, bool down) {
    return down ? static_cast<long long>(depth) * pitch + line : static_cast<long long>(line) * pitch + depth;
  }

  /** A's element at `depth`, of the thread's upper row, or of the one 8 further down. */
  __device__ __forceinline__ float of_a(int depth, int half) const {
    const int row = threadIdx.x % 32 / 4;
    if (TRANS_A) return __shfl_sync(0xffffffffu, a[depth / 2], depth % 2 * 16 + row + half * 8);
    return __shfl_sync(0xffffffffu, a[half], row * kDepth + depth);
  }
  /** B's element at `depth`, of the thread's column `second` of the pair `pair`. */
  __device__ __forceinline__ float of_b(int depth, int pair, int second) const {
    const int column = threadIdx.x % 4 * 2 + second;
    if (TRANS_B) return __shfl_sync(0xffffffffu, b[pair], column * kDepth + depth);
    return __shfl_sync(0xffffffffu, b[depth * 2 + pair / 4], pair % 4 * 8 + column);
  }
};

/** total += A·B over one K block and 64 columns, by float32 multiply-adds in the order of K. */
template <int columnBlock>
__device__ __forceinline__ void add_exactly(const MatmulParams& p, float (&total)[kAccumulators], const Tile& tile,
                                            int blockK, const Consumer& self) {
  const int row = tile.row + self.warpgroup * 64 + self.thread / 32 * 16, column = tile.column + columnBlock * 64;
  const int end = min(p.k, (blockK + 1) * kBlock);
  ExactOperands operands(p, tile.batch, row, column, blockK * kBlock);
#pragma unroll 1
  for (int k = blockK * kBlock; k < end; k += ExactOperands::kDepth) {
    const ExactOperands ahead(p, tile.batch, row, column, k + ExactOperands::kDepth);
#pragma unroll
    for (int depth = 0; depth < ExactOperands::kDepth; depth++) {
      const float upper = operands.of_a(depth, 0), lower = operands.of_a(depth, 1);
#pragma unroll
      for (int i = 0; i < 16; i++) {
        const float x = operands.of_b(depth, i / 2, i % 2);
        float* sums = total + columnBlock * 32 + i / 2 * 4 + i % 2;
        sums[0] = fmaf(upper, x, sums[0]);
        sums[2] = fmaf(lower, x, sums[2]);
      }
    }
    operands = ahead;
  }
}

/** Adds the K blocks that multiply_segment left out. */
__device__ __forceinline__ void add_exact_blocks(const MatmulParams& p, float (&total)[kAccumulators],
                                                 const Tile& tile, const Segment& segment, const ScaleReader& scales,
                                                 const Consumer& self) {
#pragma unroll 1
  for (int block = segment.kBegin; block < segment.kEnd; block++) {
    const Ways ways = scales.ways_at(block);
    if (ways.of[0] == Way::kExact) add_exactly<0>(p, total, tile, block, self);
    if constexpr (kColumnBlocks > 1) {
      if (ways.of[1] == Way::kExact) add_exactly<1>(p, total, tile, block, self);
    }
  }
}

}  // namespace

#endif
