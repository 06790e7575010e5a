// FlashAttention-2's forward pass (Dao 2023, "FlashAttention-2: Faster Attention with Better Parallelism and Work
// Partitioning", Algorithm 1) on tensor cores by mma.sync, for bfloat16, float16 and float32 on every GPU from compute
// capability 8.0 on. Each warp has its own queries, whose weights never leave its registers; keys come while the values
// before them are multiplied, and values while the keys are.
//
//   flash_mma_forward   o, lse and, for float32, statistics
//     arguments FlashParams (flash_params.cuh), whose scale is not zero, float* partial and int32 splits
//               (flash_mma_forward.cuh)
//     grid      (splits · tiles of queries · heads · batch, 1, 1)
//     block     (32 · WARPS, 1, 1)
//     dynamic shared memory   (BLOCK_M + 2 · BLOCK_N) · (sizeof(ELEMENT) · HEAD_DIM + 16) bytes, BLOCK_M = 16 · WARPS · ROW_TILES
// macros
//   ELEMENT    storage type of the tensors: bfloat16, float16 or float
//   PRODUCTS   of float: 1 for TF32, 3 for float32 (mma_products.cuh). 1 for the others
//   HEAD_DIM   the head dimension, rounded up to a multiple of 16
//   BLOCK_N    keys of a tile, a multiple of 16
//   WARPS, ROW_TILES   each warp has 16 · ROW_TILES queries
//   BLOCKS_PER_SM      that shared memory has room for on a multiprocessor; registers are given out accordingly
//   HOLD_QUERIES       1: a warp's queries stay in registers as operands
//   IS_SPLIT           1: each of `splits` blocks has a part of a tile's keys, and writes partial results, which
//                      flash_mma_join.cu joins; o, lse and statistics are left alone. 0: splits is 1
//
// Scores of float32 are scaled and then exponentiated, as flash_mma_backward.cu will find them again to the bit. In 16-bit
// types log2(e) · scale is part of the exponent's multiply-add; a negative scale turns the scores' sign.

#include "flash_mma_forward.cuh"

namespace {

constexpr int kThreads = 32 * WARPS;
constexpr int kWarpQueries = 16 * ROW_TILES;
constexpr int kQueries = kWarpQueries * WARPS;
constexpr int kKeyTiles = BLOCK_N / 8;

/** A lane has rows g and g + 8 of each 16, with g = lane / 4. */
template <typename T>
using PerRow = T[ROW_TILES][2];

using Scores = float[ROW_TILES][kKeyTiles][4];

/** The larger of the four lanes of a row; a NaN may be lost, and is found again in the weights. */
__device__ __forceinline__ float row_maximum(float x) {
  x = fmaxf(x, __shfl_xor_sync(kFullWarp, x, 1));
  return fmaxf(x, __shfl_xor_sync(kFullWarp, x, 2));
}

__device__ __forceinline__ float row_sum(float x) { return warp_reduce<4>(x, Sum{}); }

/** Turns scores to what a row's maximum is of. */
__device__ __forceinline__ void prepare(Scores& scores, const Exponent& exponent) {
  if (!kIsFloat && !exponent.isNegative) return;
#pragma unroll
  for (int m = 0; m < ROW_TILES; m++) {
#pragma unroll
    for (int n = 0; n < kKeyTiles; n++) {
#pragma unroll
      for (int i = 0; i < 4; i++) scores[m][n][i] = exponent.prepared(scores[m][n][i]);
    }
  }
}

/** Statistics of rows as their keys go by (Milakov & Gimelshein 2018); the sum is this lane's share. */
struct RunningRows {
  PerRow<float> largest, sum;

  __device__ __forceinline__ RunningRows() {
#pragma unroll
    for (int m = 0; m < ROW_TILES; m++) {
      largest[m][0] = largest[m][1] = lowest<float>();
      sum[m][0] = sum[m][1] = 0;
    }
  }

  /** Turns scores into weights; `factors` are those of all that was summed before. */
  __device__ __forceinline__ void add(Scores& scores, const Exponent& exponent, PerRow<float>& factors) {
#pragma unroll
    for (int m = 0; m < ROW_TILES; m++) {
#pragma unroll
      for (int half = 0; half < 2; half++) {
        float next = largest[m][half];
#pragma unroll
        for (int n = 0; n < kKeyTiles; n++) next = fmaxf(next, fmaxf(scores[m][n][2 * half], scores[m][n][2 * half + 1]));
        next = row_maximum(next);
        const float shift = exponent.shift(next);
        factors[m][half] = exponent.weight(largest[m][half], shift);
        largest[m][half] = next;
        float total = sum[m][half] * factors[m][half];
#pragma unroll
        for (int n = 0; n < kKeyTiles; n++) {
#pragma unroll
          for (int i = 2 * half; i < 2 * half + 2; i++) {
            scores[m][n][i] = exponent.weight(scores[m][n][i], shift);
            total += scores[m][n][i];
          }
        }
        sum[m][half] = total;
      }
    }
  }
};

/** Multiplies sums by the factors of their rows, unless those are one for all rows of the warp, as most are. */
__device__ __forceinline__ void scale_rows(float (&sums)[ROW_TILES][2 * kPairs][4], const PerRow<float>& factors) {
  bool isNeeded = false;
#pragma unroll
  for (int m = 0; m < ROW_TILES; m++) isNeeded |= factors[m][0] != 1 || factors[m][1] != 1;
  if (!__any_sync(kFullWarp, isNeeded)) return;
#pragma unroll
  for (int m = 0; m < ROW_TILES; m++) {
#pragma unroll
    for (int n = 0; n < 2 * kPairs; n++) {
#pragma unroll
      for (int i = 0; i < 4; i++) sums[m][n][i] *= factors[m][i / 2];
    }
  }
}

/** The first key that each of this lane's rows does not see; rows that do not exist see what the last one does. */
struct Limits {
  PerRow<int> end;
  /** Of the warp's first and last row. */
  int least, most;

  __device__ __forceinline__ Limits(const FlashParams& p, int query)
      : least(visible_keys(p, query)), most(visible_keys(p, query + kWarpQueries - 1)) {
#pragma unroll
    for (int m = 0; m < ROW_TILES; m++) {
#pragma unroll
      for (int half = 0; half < 2; half++) end[m][half] = visible_keys(p, query + 16 * m + 8 * half + lane_index() / 4);
    }
  }

  /** Makes -inf of the scores of keys that are not seen. */
  __device__ __forceinline__ void hide(Scores& scores, int key) const {
    if (key + BLOCK_N <= least) return;
    const int first = key + 2 * (lane_index() % 4);
#pragma unroll
    for (int m = 0; m < ROW_TILES; m++) {
#pragma unroll
      for (int n = 0; n < kKeyTiles; n++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
          if (first + 8 * n + i % 2 >= end[m][i / 2]) scores[m][n][i] = lowest<float>();
        }
      }
    }
  }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads, BLOCKS_PER_SM)
    flash_mma_forward(const __grid_constant__ FlashParams p, float* partial, int32 splits) {
  extern __shared__ __align__(16) ELEMENT shared[];
  ELEMENT* const qTile = shared;
  ELEMENT* const kTile = qTile + kQueries * kPitch;
  ELEMENT* const vTile = kTile + BLOCK_N * kPitch;

  // Under a causal mask the tiles with the most work come first.
  const int split = IS_SPLIT ? blockIdx.x % splits : 0, whole = IS_SPLIT ? blockIdx.x / splits : blockIdx.x;
  const int tiles = ceil_div(p.queries, kQueries), index = whole % tiles, rest = whole / tiles;
  const int tileQuery = (p.causal ? tiles - 1 - index : index) * kQueries;
  const int head = rest % p.heads, batch = rest / p.heads, keyHead = head / (p.heads / p.keyHeads);
  const int query = tileQuery + warp_index() * kWarpQueries;
  const HeadRows<const ELEMENT> q(p.q, p.qStrides, batch, head, p.queries, p.headDim);
  const HeadRows<const ELEMENT> k(p.k, p.kStrides, batch, keyHead, p.keys, p.headDim);
  const HeadRows<const ELEMENT> v(p.v, p.vStrides, batch, keyHead, p.keys, p.headDim);
  ELEMENT* const ownRows = qTile + warp_index() * kWarpQueries * kPitch;

  const Exponent exponent(p.scale);
  const Limits limits(p, query);
  RunningRows rows;
  float sums[ROW_TILES][2 * kPairs][4] = {};
  const int lastQuery = min(tileQuery + kQueries, p.queries) - 1;
  const int blocks = ceil_div(visible_keys(p, lastQuery), BLOCK_N), share = IS_SPLIT ? ceil_div(blocks, splits) : blocks;
  const int first = split * share, last = IS_SPLIT ? min(first + share, blocks) - 1 : blocks - 1;
  copy_rows<kQueries, kThreads>(qTile, q, tileQuery);
  if (first <= last) copy_rows<BLOCK_N, kThreads>(kTile, k, last * BLOCK_N);
  commit_copies();
#if HOLD_QUERIES
  LeftHeld<ROW_TILES, HEAD_DIM / kStep> queries;
  wait_for_copies<0>();
  __syncthreads();
  queries.hold(LeftRows{ownRows});
#else
  const LeftRows queries{ownRows};
#endif
  for (int block = last; block >= first; block--) {
    const int key = block * BLOCK_N;
    wait_for_copies<0>();
    __syncthreads();  // the keys are there, and the values of the tile before have been read
    copy_rows<BLOCK_N, kThreads>(vTile, v, key);
    commit_copies();
    Scores scores = {};
    const bool isSeen = key < limits.most;
    if (isSeen) add_scores<HEAD_DIM / kStep, Order::kLeftLast>(scores, queries, ColumnsAlongK{kTile});
    wait_for_copies<0>();
    __syncthreads();  // the values are there, and the keys have been read
    if (block > first) {
      copy_rows<BLOCK_N, kThreads>(kTile, k, key - BLOCK_N);
      commit_copies();
    }
    if (!isSeen) continue;
    prepare(scores, exponent);
    limits.hide(scores, key);
    PerRow<float> factors;
    rows.add(scores, exponent, factors);
    scale_rows(sums, factors);
    add_product<BLOCK_N / kStep>(sums, LeftSums<ROW_TILES, kKeyTiles>{scores}, RowsAlongK{vTile});
  }

  wait_for_copies<0>();
  __syncthreads();  // the queries have been read, or, without a key, at least copied; they make room for the outputs
#pragma unroll
  for (int m = 0; m < ROW_TILES; m++) {
    float factors[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const float sum = row_sum(rows.sum[m][half]), largest = rows.largest[m][half];
      const int row = query + 16 * m + 8 * half + lane_index() / 4;
      const int64 at = row_offset(p, batch, head) + row;
      factors[half] = sum == 0 ? 0.0f : 1 / sum;
      if (row >= p.queries) continue;
      const bool isFirstLane = lane_index() % 4 == 0;
      if (IS_SPLIT) {
        const PartialRows to(p, partial, splits, split);
        write_partial(to.sums(at), sums[m], half);
        if (isFirstLane) store_vector(to.statistics(at), Vector<float, 2>{largest, sum});
      } else if (isFirstLane) {
        write_statistics(p, at, exponent, largest, sum);
      }
    }
    if (!IS_SPLIT) write_sums(ownRows + 16 * m * kPitch, sums[m], factors);
  }
  if (IS_SPLIT) return;
  __syncwarp();
  const HeadRows<ELEMENT> o(p.o, p.oStrides, batch, head, p.queries, p.headDim);
  store_rows<kWarpQueries, HEAD_DIM>(o, ownRows, query, 0);
}
