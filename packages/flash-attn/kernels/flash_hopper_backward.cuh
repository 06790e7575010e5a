// What the kernels of flash_hopper_backward.cu are given.
//
// HopperBackwardParams, 960 bytes, 64-byte aligned, passed by value to all three; src/cuda/hopper-backward.ts writes it.
//   0    q, 128 gradO      CUtensorMap of [batch][heads][queries][d], boxes of BLOCK_M rows (hopper_tiles.cuh)
//   256  k, 384 v          CUtensorMap of [batch][keyHeads][keys][d], boxes of BLOCK_N rows
//   512  gradK, 640 gradV  CUtensorMap, as k, boxes of 64 rows and one part
//   768  lse          const float*    [batch][heads][queries], dense
//   776  gradLse      const float*    likewise, or null: the gradient of lse
//   784  lseLog2      float*          [batch · heads][paddedQueries], scratch: lse · log2 e; +inf where weights are 0
//   792  delta        float*          likewise: rowsum(gradO ∘ o) - gradLse
//   800  sums         float*          [batch · heads][rowTiles][BLOCK_M · d], scratch: gradQ / scale by fragments
//   808  o            const ELEMENT*  [batch][heads][queries][d]; these three of rows that lie densely, 16-byte aligned
//   816  gradO        const ELEMENT*  likewise
//   824  gradQ        ELEMENT*        likewise
//   832  oStrides     int64[3]        of batch, head and row, in elements
//   856  gradOStrides int64[3]
//   880  gradQStrides int64[3]
//   904  scaleLog2    float32         scale · log2 e
//   908  scale        float32
//   912  queries      int32
//   916  keys         int32
//   920  heads        int32           of q
//   924  keyHeads     int32
//   928  keyHeadsTotal  int32         batch · keyHeads
//   932  rowTiles     int32           ceil(queries / BLOCK_M)
//   936  keyTiles     int32           ceil(keys / BLOCK_N)
//   940  band         int32           heads of k whose tiles are taken together, so that their q and gradO stay in L2
//   944  (padding to 960)
#ifndef ROOFLINE_FLASH_HOPPER_BACKWARD_CUH
#define ROOFLINE_FLASH_HOPPER_BACKWARD_CUH

#include "hopper_tiles.cuh"

struct HopperStrides {
  int64 batch, head, row;
};

struct HopperBackwardParams {
  TensorMap q, gradO, k, v, gradK, gradV;
  const float *lse, *gradLse;
  float *lseLog2, *delta, *sums;
  const ELEMENT *o, *gradORows;
  ELEMENT* gradQ;
  HopperStrides oStrides, gradOStrides, gradQStrides;
  float scaleLog2, scale;
  int32 queries, keys, heads, keyHeads, keyHeadsTotal, rowTiles, keyTiles, band;
};
static_assert(sizeof(HopperBackwardParams) == 960, "as the host writes it");

namespace {

constexpr int kWarpgroups = 2;
constexpr int kBlockN = 64 * kWarpgroups;  // keys of a block, 64 a warpgroup
constexpr int kConsumers = 128 * kWarpgroups;
constexpr int kThreads = kConsumers + 128;

/** dQ of a step: each warpgroup has half of the columns of 64 queries, or half of 128 queries. */
constexpr bool kHalvesColumns = BLOCK_M == 64;
constexpr int kSumColumns = kHalvesColumns ? HEAD_DIM / 2 : HEAD_DIM;
constexpr int kSumsOfThread = kSumColumns / 2;
static_assert(BLOCK_M == 128 || (BLOCK_M == 64 && kSumColumns % CHUNK == 0), "no such split of dQ");

/** Where the fragments of a tile of queries lie among the sums: [warpgroup][kSumsOfThread / 4][128 threads][4]. */
__device__ __forceinline__ float* fragments_of(const HopperBackwardParams& p, int headOfAll, int rowTile,
                                               int warpgroup) {
  const int64 tile = static_cast<int64>(headOfAll) * p.rowTiles + rowTile;
  return p.sums + tile * (BLOCK_M * HEAD_DIM) + warpgroup * (64 * kSumColumns) + threadIdx.x % 128 * 4;
}

template <typename T>
__device__ __forceinline__ T* head_of(T* tensor, const HopperStrides& strides, int batch, int head) {
  return tensor + batch * strides.batch + head * strides.head;
}

}  // namespace

#endif
