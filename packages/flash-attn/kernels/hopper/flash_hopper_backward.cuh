// What the kernels of flash_hopper_backward.cu are given.
//
// HopperBackwardParams, 1088 bytes, 64-byte aligned, passed by value to all three; src/cuda/hopper/hopper-backward.ts writes it.
//   0    q, 128 gradO      CUtensorMap of [batch][heads][queries][d], boxes of BLOCK_M rows (hopper_tiles.cuh)
//   256  k, 384 v          CUtensorMap of [batch][keyHeads][keys][d], boxes of BLOCK_N rows
//   512  gradK, 640 gradV  CUtensorMap, as k, boxes of 64 rows and one part
//   768  gradQ             CUtensorMap, as q, boxes of 64 rows and one part
//   896  lse          const float*    [batch][heads][queries], dense
//   904  gradLse      const float*    likewise, or null: the gradient of lse
//   912  lseLog2      float*          [batch · heads][paddedQueries], scratch: lse · log2 e; +inf where weights are 0
//   920  delta        float*          likewise: rowsum(gradO ∘ o) - gradLse
//   928  sums         float*          [batch · heads][rowTiles][BLOCK_M · HEAD_DIM], scratch: gradQ / scale by fragments
//   936  turns        int32*          [1 + batch · heads · rowTiles], scratch, or null where dQ is not summed in order: how
//                                     many blocks have begun, and how many have added to each tile of queries
//   944  o            const ELEMENT*  [batch][heads][queries][d]; these three of rows that lie densely, 16-byte aligned
//   952  gradO        const ELEMENT*  likewise
//   960  gradQ        ELEMENT*        likewise
//   968  oStrides     int64[3]        of batch, head and row, in elements
//   992  gradOStrides int64[3]
//   1016 gradQStrides int64[3]
//   1040 scaleLog2    float32         scale · log2 e
//   1044 scale        float32
//   1048 queries      int32
//   1052 keys         int32
//   1056 heads        int32           of q
//   1060 keyHeads     int32
//   1064 keyHeadsTotal  int32         batch · keyHeads
//   1068 rowTiles     int32           ceil(queries / BLOCK_M)
//   1072 keyTiles     int32           ceil(keys / BLOCK_N)
//   1076 band         int32           heads of k whose tiles are taken together, so that their q and gradO stay in L2
//   1080 columns      int32           d: a multiple of 8, at most HEAD_DIM
//   1084 unseenTiles  int32           tiles of queries, from the first on, that see no key
#ifndef ROOFLINE_FLASH_HOPPER_BACKWARD_CUH
#define ROOFLINE_FLASH_HOPPER_BACKWARD_CUH

#include "hopper_tiles.cuh"

struct HopperStrides {
  int64 batch, head, row;
};

struct HopperBackwardParams {
  TensorMap q, gradO, k, v, gradK, gradV, gradQMap;
  const float *lse, *gradLse;
  float *lseLog2, *delta, *sums;
  int32* turns;
  const ELEMENT *o, *gradORows;
  ELEMENT* gradQ;
  HopperStrides oStrides, gradOStrides, gradQStrides;
  float scaleLog2, scale;
  int32 queries, keys, heads, keyHeads, keyHeadsTotal, rowTiles, keyTiles, band, columns, unseenTiles;
};
static_assert(sizeof(HopperBackwardParams) == 1088, "as the host writes it");

namespace {

constexpr int kWarpgroups = 2;
constexpr int kBlockN = 64 * kWarpgroups;  // keys of a block, 64 a warpgroup
constexpr int kConsumers = 128 * kWarpgroups;
constexpr int kThreads = kConsumers + 128;

/** Where TMA fills narrow parts up with zeros, it takes one at a time: hopper_tiles.cuh. */
constexpr int kTileCopies = NARROW_PADDED ? kParts : kCopies;

/** Whether dQ is summed in the order of the keys; flash_hopper_backward_order.cuh says how. */
constexpr bool kOrdered = SUM_BUFFERS > 0;

/** dQ of a step: each warpgroup has half of the columns of 64 queries, or half of 128 queries. */
constexpr bool kHalvesColumns = BLOCK_M == 64;
constexpr int kSumColumns = kHalvesColumns ? HEAD_DIM / 2 : HEAD_DIM;
constexpr int kTileSums = BLOCK_M * HEAD_DIM;
constexpr int kSumsOfThread = kTileSums / kConsumers;
static_assert(BLOCK_M == 128 || (BLOCK_M == 64 && kSumColumns % CHUNK == 0), "no such split of dQ");

/** Where the sums of a tile of queries lie: [warpgroup][kSumsOfThread / 4][128 threads][4], by fragments of products. */
__device__ __forceinline__ float* sums_of(const HopperBackwardParams& p, int headOfAll, int rowTile) {
  return p.sums + (static_cast<int64>(headOfAll) * p.rowTiles + rowTile) * kTileSums;
}

/** Where this thread's first four lie among them. */
__device__ __forceinline__ int fragment_offset(int warpgroup) {
  return warpgroup * (kTileSums / kWarpgroups) + static_cast<int>(threadIdx.x) % 128 * 4;
}

/** How many blocks have added to a tile of queries. */
__device__ __forceinline__ int32* turn_of(const HopperBackwardParams& p, int headOfAll, int rowTile) {
  return p.turns + 1 + static_cast<int64>(headOfAll) * p.rowTiles + rowTile;
}

template <typename T>
__device__ __forceinline__ T* head_of(T* tensor, const HopperStrides& strides, int batch, int head) {
  return tensor + batch * strides.batch + head * strides.head;
}

}  // namespace

#endif
