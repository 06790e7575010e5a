// FlashAttention-2's backward pass (Dao 2023, Algorithm 2) on tensor cores by mma.sync, for bfloat16, float16 and float32 on
// every GPU from compute capability 8.0 on. A block has one tile of keys and walks over the queries that see it, of every
// head that shares it. It calculates scores transposed, keys by queries: a warp has its own keys, so that weights and
// their gradients feed gradV and gradK from registers. Only gradQ, which sums over the keys of all warps and blocks,
// needs the gradients of the scores in shared memory, and is added to global memory.
//
//   flash_mma_backward   gradK, gradV, and gradQ / scale added to sums
//     arguments FlashParams (flash_params.cuh), and float* rows, float* sums and int32* turns (flash_mma_backward.cuh),
//               which flash_mma_before filled
//     grid      (tiles of keys · PARTS · keyHeads · batch, 1, 1)
//     block     (32 · WARPS, 1, 1)
//     dynamic shared memory, BLOCK_N = 16 · WARPS keys:
//       (2 · BLOCK_N + 2 · STAGES · BLOCK_M) · (sizeof(ELEMENT) · HEAD_DIM + 16) + STAGES · 12 · BLOCK_M bytes, and for the
//       gradients of scores 2 · BLOCK_N · (BLOCK_M + 8), of float 4 · BLOCK_M · (BLOCK_N + 8)
// macros
//   ELEMENT    storage type of the tensors: bfloat16, float16 or float
//   PRODUCTS   of float: 1 for TF32, 3 for float32 (mma_products.cuh). 1 for the others
//   HEAD_DIM   the head dimension, rounded up to a multiple of 16 · PARTS
//   SCORE_DIM  the head dimension, rounded up to a multiple of 16, as the forward pass has it: scores must be its own
//   PARTS      blocks that share a tile of keys, each with as many columns of the gradients: what is too wide for registers
//   BLOCK_M    queries of a tile, a multiple of 16 that divides 16 · WARPS
//   WARPS      a power of two; each has 16 keys
//   STAGES     1 or 2 tiles of queries in shared memory
//   BLOCKS_PER_SM      that shared memory has room for on a multiprocessor; registers are given out accordingly
//   HOLD_KEYS          1: a warp's keys and values stay in registers as operands
//   DETERMINISTIC      1: blocks of keys add to a tile of queries one after another, last keys first. These reach a tile,
//                      under a causal mask, in fewer steps, so that no block waits long

#include "flash_mma_backward.cuh"

namespace {

constexpr bool kIsOrdered = DETERMINISTIC;
constexpr int kThreads = 32 * WARPS;
constexpr int kKeys = 16 * WARPS;
constexpr int kQueryTiles8 = BLOCK_M / 8;
constexpr int kScoreSteps = SCORE_DIM / kStep;
constexpr int kOwnPairs = kPairs / PARTS;
constexpr int kOwnColumns = kOwnPairs * kPair;
static_assert(kPairs % PARTS == 0, "every part has as many columns");
static_assert(WARPS % kRowTilesOfQueries == 0, "as many warps for each 16 queries of gradQ");

/** Warps that share 16 queries of gradQ, and the pairs of columns that one of them takes, at most. */
constexpr int kSharing = WARPS / kRowTilesOfQueries;
constexpr int kPairsOfWarp = (kOwnPairs + kSharing - 1) / kSharing;

/** Gradients of scores: keys by queries of 16-bit types, queries by keys of float. */
constexpr int kGradientPitch = (kIsFloat ? kKeys : BLOCK_M) + 8;
constexpr int kGradientElements = (kIsFloat ? BLOCK_M : kKeys) * kGradientPitch;
constexpr int kStageElements = 2 * BLOCK_M * kPitch;

/** Keys by queries; of a lane keys g and g + 8, with g = lane / 4. */
using Scores = float[1][kQueryTiles8][4];
using Gradient = float[1][2 * kOwnPairs][4];

/** The left operand that gradQ needs, of queries by keys, from 16 · rowTile on. */
struct ScoreGradients {
  static constexpr bool kIsInRegisters = false;
  const ELEMENT* tile;
  int rowTile;
  __device__ __forceinline__ void finish(Fragment& a, const uint32 (&words)[4], int, int) const { a.set(words); }
  __device__ __forceinline__ void load(uint32 (&words)[4], int, int step) const {
    const int lane = lane_index();
    if constexpr (kIsFloat) {
      // k is taken as 0, 2, 4, 6, 1, 3, 5, 7, as RowsAlongK does.
      const ELEMENT* const row = tile + (16 * rowTile + lane / 4) * kGradientPitch + step * kStep + 2 * (lane % 4);
      const Vector<uint32, 2> upper = load_vector<2>(reinterpret_cast<const uint32*>(row));
      const Vector<uint32, 2> lower = load_vector<2>(reinterpret_cast<const uint32*>(row + 8 * kGradientPitch));
#pragma unroll
      for (int i = 0; i < 4; i++) words[i] = (i % 2 ? lower : upper)[i / 2];
    } else {
      const int key = step * kStep + lane / 16 * 8 + lane % 8;
      load_matrices_transposed(words, tile + key * kGradientPitch + 16 * rowTile + lane / 8 % 2 * 8);
    }
  }
};

/** Writes this warp's gradients of scores where ScoreGradients finds them. */
template <typename T>
__device__ __forceinline__ void write_gradients(T* tile, const Scores& gradients) {
  const int key = 16 * warp_index() + lane_index() / 4, query = 2 * (lane_index() % 4);
#pragma unroll
  for (int n = 0; n < kQueryTiles8; n++) {
    const float (&x)[4] = gradients[0][n];
    if constexpr (sizeof(T) == sizeof(float)) {
#pragma unroll
      for (int i = 0; i < 4; i++) tile[(query + 8 * n + i % 2) * kGradientPitch + key + i / 2 * 8] = x[i];
    } else {
#pragma unroll
      for (int half = 0; half < 2; half++) {
        T* const pair = tile + (key + 8 * half) * kGradientPitch + query + 8 * n;
        *reinterpret_cast<uint32*>(pair) = pack_pair<T>(x[2 * half], x[2 * half + 1]);
      }
    }
  }
}

/** Turns scores into weights, and gradients of weights into gradients of scores. */
struct Weights {
  float scale;
  int queries;
  /** The first query that sees each of this lane's keys, and the last one of the warp's. */
  int first[2], last;

  __device__ __forceinline__ Weights(const FlashParams& p, int key)
      : scale(static_cast<float>(kIsFloat ? p.scale : p.scale * kLog2E)),
        queries(p.queries),
        last(query_of(p, key + 15)) {
    first[0] = query_of(p, key + lane_index() / 4);
    first[1] = query_of(p, key + lane_index() / 4 + 8);
  }
  static __device__ __forceinline__ int query_of(const FlashParams& p, int key) {
    return key < p.keys ? first_query(p, key) : 0x7fffffff;
  }

  /** `rows`: of a tile of queries from `query` on, as flash_mma_backward.cuh has them. */
  __device__ __forceinline__ void apply(Scores& scores, Scores& gradients, const float* rows, int query) const {
#pragma unroll
    for (int n = 0; n < kQueryTiles8; n++) {
      const float* const own = rows + 8 * n + 2 * (lane_index() % 4);
      const Vector<float, 2> shift = load_vector<2>(own), delta = load_vector<2>(own + 2 * BLOCK_M);
      Vector<float, 2> factor = {};
      if (kIsFloat) factor = load_vector<2>(own + BLOCK_M);
#pragma unroll
      for (int i = 0; i < 4; i++) {
        float& score = scores[0][n][i];
        if (kIsFloat) {
          score = factor[i % 2] * exponential(__fmul_rn(score, scale) - shift[i % 2]);
        } else {
          score = fast_exp2(fmaf(score, scale, -shift[i % 2]));
        }
        gradients[0][n][i] = score * (gradients[0][n][i] - delta[i % 2]);
      }
    }
    if (query >= last && query + BLOCK_M <= queries) return;
#pragma unroll
    for (int n = 0; n < kQueryTiles8; n++) {
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const int at = query + 8 * n + 2 * (lane_index() % 4) + i % 2;
        if (at < first[i / 2] || at >= queries) scores[0][n][i] = gradients[0][n][i] = 0;
      }
    }
  }
};

/** What a block works on, and the tiles of queries that it walks over. */
struct Work {
  int key, part, keyHead, batch, group;
  int firstTile, tilesOfHead, count;

  __device__ __forceinline__ Work(const FlashParams& p, int index) {
    const int keyTiles = ceil_div(p.keys, kKeys), rest = index / keyTiles;
    key = (kIsOrdered ? keyTiles - 1 - index % keyTiles : index % keyTiles) * kKeys;
    part = rest % PARTS;
    keyHead = rest / PARTS % p.keyHeads;
    batch = rest / PARTS / p.keyHeads;
    group = p.heads / p.keyHeads;
    firstTile = first_query(p, key) / BLOCK_M;
    tilesOfHead = max(query_tiles(p) - firstTile, 0);
    count = tilesOfHead * group;
  }
  /** How many blocks add to a tile of queries before this one: those of later keys, which reach it in fewer steps. */
  __device__ __forceinline__ int turn(const FlashParams& p, int tile) const {
    return ceil_div(visible_keys(p, (tile + 1) * BLOCK_M - 1), kKeys) - 1 - key / kKeys;
  }
  __device__ __forceinline__ int head(int i) const { return keyHead * group + i / tilesOfHead; }
  __device__ __forceinline__ int tile(int i) const { return firstTile + i % tilesOfHead; }
};

/** Numbers are given out as blocks begin: those of lower number, which a block may wait for, run. */
__device__ __forceinline__ int block_number(int32* begun) {
  __shared__ int32 number;
  if (threadIdx.x == 0) number = atomicAdd(begun, 1);
  __syncthreads();
  return number;
}

/** Begins to copy tile number i of a block's queries, their gradients and their rows. */
__device__ __forceinline__ void copy_stage(const FlashParams& p, const BackwardMemory& memory, const Work& work, int i,
                                           ELEMENT* stage, float* rows) {
  const int head = work.head(i), tile = work.tile(i);
  const HeadRows<const ELEMENT> q(p.q, p.qStrides, work.batch, head, p.queries, p.headDim);
  const HeadRows<const ELEMENT> gradO(p.gradO, p.gradOStrides, work.batch, head, p.queries, p.headDim);
  copy_rows<BLOCK_M, kThreads>(stage, q, tile * BLOCK_M);
  copy_rows<BLOCK_M, kThreads>(stage + BLOCK_M * kPitch, gradO, tile * BLOCK_M);
  const int64 index = static_cast<int64>(work.batch * p.heads + head) * query_tiles(p) + tile;
  const float* const source = memory.rows + index * (3 * BLOCK_M);
  for (int j = threadIdx.x * 4; j < 3 * BLOCK_M; j += kThreads * 4) copy_in_background(rows + j, source + j, true);
  commit_copies();
}

/** Adds this warp's share of gradQ's sums to memory. */
__device__ __forceinline__ void add_sums(float* sums, const float (&x)[1][2 * kPairsOfWarp][4], const Work& work) {
  const int rowTile = warp_index() / kSharing;
#pragma unroll
  for (int i = 0; i < kPairsOfWarp; i++) {
    const int pair = warp_index() % kSharing + i * kSharing;
    if (pair >= kOwnPairs) break;
#pragma unroll
    for (int half = 0; half < 2; half++) {
      float* const four = sums + sum_offset(rowTile, work.part * kOwnPairs + pair, half);
      const float (&first)[4] = x[0][2 * i], (&second)[4] = x[0][2 * i + 1];
      const Vector<float, 4> values = {first[2 * half], first[2 * half + 1], second[2 * half], second[2 * half + 1]};
      if constexpr (kAddsVectors) {
        add_to_memory(four, values);
      } else {
#pragma unroll
        for (int j = 0; j < 4; j++) add_to_memory(four + j * kSumStep, values.values[j]);
      }
    }
  }
}

/** Adds a block's share of gradQ to the sums of its tile number i; where blocks add in order, when its turn has come. */
__device__ __forceinline__ void add_to_tile(const FlashParams& p, const BackwardMemory& memory, const Work& work, int i,
                                            const float (&gradQ)[1][2 * kPairsOfWarp][4]) {
  const int64 tile = static_cast<int64>(work.batch * p.heads + work.head(i)) * query_tiles(p) + work.tile(i);
  float* const sums = memory.sums + tile * (BLOCK_M * HEAD_DIM);
  if (!kIsOrdered) return add_sums(sums, gradQ, work);
  int32* const turn = memory.turns + 1 + tile * PARTS + work.part;
  const int before = work.turn(p, work.tile(i));
  if (threadIdx.x == 0) {
    while (read_acquired(turn) != before) {
    }
  }
  __syncthreads();
  add_sums(sums, gradQ, work);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) write_released(turn, before + 1);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads, BLOCKS_PER_SM)
    flash_mma_backward(const __grid_constant__ FlashParams p, float* rowsMemory, float* sumsMemory, int32* turns) {
  const BackwardMemory memory = {rowsMemory, sumsMemory, turns};
  extern __shared__ __align__(16) ELEMENT shared[];
  ELEMENT* const kTile = shared;
  ELEMENT* const vTile = kTile + kKeys * kPitch;
  ELEMENT* const stages = vTile + kKeys * kPitch;
  ELEMENT* const gradientTile = stages + STAGES * kStageElements;
  float* const rowsOfStages = reinterpret_cast<float*>(gradientTile + kGradientElements);

  const Work work(p, kIsOrdered ? block_number(turns) : blockIdx.x);
  const int ownKey = work.key + 16 * warp_index(), columns = work.part * kOwnColumns;
  const HeadRows<const ELEMENT> k(p.k, p.kStrides, work.batch, work.keyHead, p.keys, p.headDim);
  const HeadRows<const ELEMENT> v(p.v, p.vStrides, work.batch, work.keyHead, p.keys, p.headDim);
  copy_rows<kKeys, kThreads>(kTile, k, work.key);
  copy_rows<kKeys, kThreads>(vTile, v, work.key);
  commit_copies();
  if (work.count > 0) copy_stage(p, memory, work, 0, stages, rowsOfStages);

  const Weights weightsOf(p, ownKey);
  ELEMENT* const ownK = kTile + 16 * warp_index() * kPitch;
  ELEMENT* const ownV = vTile + 16 * warp_index() * kPitch;
#if HOLD_KEYS
  LeftHeld<1, kScoreSteps> keys, values;
  wait_for_copies<0>();
  __syncthreads();
  keys.hold(LeftRows{ownK});
  values.hold(LeftRows{ownV});
#else
  const LeftRows keys{ownK}, values{ownV};
#endif
  Gradient gradK = {}, gradV = {};
  for (int i = 0; i < work.count; i++) {
    const int stage = i % STAGES;
    const ELEMENT* const q = stages + stage * kStageElements;
    const ELEMENT* const gradO = q + BLOCK_M * kPitch;
    const float* const rows = rowsOfStages + stage * 3 * BLOCK_M;
    wait_for_copies<0>();
    __syncthreads();  // this stage is there; all that the step before has read or written in shared memory is done
    if (STAGES == 2 && i + 1 < work.count) {
      const int next = (i + 1) % STAGES;
      copy_stage(p, memory, work, i + 1, stages + next * kStageElements, rowsOfStages + next * 3 * BLOCK_M);
    }
    Scores weights = {}, gradients = {};
    add_scores<kScoreSteps, Order::kRightLast>(weights, keys, ColumnsAlongK{q});
    add_product<kScoreSteps>(gradients, values, ColumnsAlongK{gradO});
    weightsOf.apply(weights, gradients, rows, work.tile(i) * BLOCK_M);
    write_gradients(gradientTile, gradients);
    __syncthreads();  // the gradients of the scores are there
    add_product<BLOCK_M / kStep>(gradV, LeftSums<1, kQueryTiles8>{weights}, RowsAlongK{gradO + columns});
    add_product<BLOCK_M / kStep>(gradK, LeftSums<1, kQueryTiles8>{gradients}, RowsAlongK{q + columns});
    float gradQ[1][2 * kPairsOfWarp][4] = {};
    // Where the warps' shares are uneven, some calculate columns past the last, which add_sums leaves.
    add_product<kKeys / kStep>(gradQ, ScoreGradients{gradientTile, warp_index() / kSharing},
                               RowsAlongK{kTile + columns, warp_index() % kSharing, kSharing});
    add_to_tile(p, memory, work, i, gradQ);
    if (STAGES == 1 && i + 1 < work.count) {
      __syncthreads();  // the stage has been read
      copy_stage(p, memory, work, i + 1, stages, rowsOfStages);
    }
  }

  wait_for_copies<0>();
  __syncthreads();  // keys and values have been read, and make room for their gradients
  const float scale = static_cast<float>(p.scale), scales[2] = {scale, scale}, ones[2] = {1, 1};
  write_sums(ownK + columns, gradK[0], scales);
  write_sums(ownV + columns, gradV[0], ones);
  __syncwarp();
  const HeadRows<ELEMENT> gradKRows(p.gradK, p.gradKStrides, work.batch, work.keyHead, p.keys, p.headDim);
  const HeadRows<ELEMENT> gradVRows(p.gradV, p.gradVStrides, work.batch, work.keyHead, p.keys, p.headDim);
  store_rows<16, kOwnColumns>(gradKRows, ownK, ownKey, columns);
  store_rows<16, kOwnColumns>(gradVRows, ownV, ownKey, columns);
}
