// What the kernels of the backward pass by mma.sync share in addition to FlashParams: rows and sums of whole tiles of
// queries.
//
// A tile has BLOCK_M queries; the last one of a head may reach beyond its end.
//   rows   float [batch · heads][tiles][3][BLOCK_M]: of each query the shift and the factor of its weights, which are
//          factor · exp(score - shift) (of 16-bit types the shift is in binary units and the factor is left out), and delta =
//          rowsum(gradO ∘ o) - gradLse; zeros after the last query
//   sums   float [batch · heads][tiles][BLOCK_M · HEAD_DIM]: gradQ / scale, as blocks of keys add to it, in the order of
//          sum_offset, in which a warp's additions lie side by side
//   turns  int32 [batch · heads][tiles][PARTS], after one number that counts the blocks that have begun. Only where
//          DETERMINISTIC: how many blocks of keys have added to a tile, part by part
// flash_mma_before fills rows, and clears sums and turns.
#ifndef ROOFLINE_FLASH_MMA_BACKWARD_CUH
#define ROOFLINE_FLASH_MMA_BACKWARD_CUH

#include "mma_products.cuh"

namespace {

/** The workspaces, null where they are not used. */
struct BackwardMemory {
  float *rows, *sums;
  int32* turns;
};

constexpr int kRowTilesOfQueries = BLOCK_M / 16;

/**
 * Of a tile's sums, where those of a lane lie that are in half `half` of the 16 rows number `rowTile`, in pair `pair` of
 * columns. The four follow one another, or, where they are added one by one, those of other lanes lie between.
 */
__device__ __forceinline__ int sum_offset(int rowTile, int pair, int half) {
  const int unit = (rowTile * kPairs + pair) * 2 + half;
  return unit * 128 + lane_index() * (kAddsVectors ? 4 : 1);
}
constexpr int kSumStep = kAddsVectors ? 1 : 32;

/** Query tiles of a head. */
__device__ __forceinline__ int query_tiles(const FlashParams& p) { return ceil_div(p.queries, BLOCK_M); }

}  // namespace

#endif
