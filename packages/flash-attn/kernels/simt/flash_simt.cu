// FlashAttention-2 (Dao 2023, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning",
// Algorithms 1 and 2) on the ordinary cores: products by multiply-adds of float (or double), for every dtype, head
// dimension up to 256 and GPU. Scores live in shared memory, a tile at a time, and never reach device memory.
//
//   flash_forward       o and lse              a block: one tile of queries, over the keys that they see
//   flash_delta         delta                  a warp: one row
//   flash_grad_keys     gradK and gradV        a block: one tile of keys, over the queries that see them, of every head
//                                              that shares them
//   flash_grad_queries  gradQ                  a block: one tile of queries, over the keys that they see
//
// Each result is summed by one block in one order, so the same inputs always give the same bits; the price is that
// both backward kernels calculate the weights from lse, seven products instead of five.
//
// all    argument FlashParams (flash_params.cuh); block (256, 1, 1)
// grid   (tiles · heads · batch, 1, 1), with heads of q and tiles of queries; flash_grad_keys: keyHeads and tiles of
//        keys; flash_delta: (rows of lse / 8, rounded up, 1, 1)
// dynamic shared memory, in units of Accumulator, with pitch = HEAD_DIM + 16 / sizeof(Accumulator)
//        flash_forward         (BLOCK_M + BLOCK_N) · pitch + BLOCK_M · (BLOCK_N + 16 / sizeof(Accumulator))
//        the two gradients     2 · (BLOCK_M + BLOCK_N) · pitch + the same
// macros
//   ELEMENT    storage type of the tensors
//   HEAD_DIM   the head dimension, rounded up to a multiple of 16
//   BLOCK_M, BLOCK_N   queries and keys of a tile: 16, 32 or 64
//
// The 256 threads cover each product as 16 × 16: a thread has rows y, y + 16, ... and columns x, x + 16, ... of it.

#include "flash_params.cuh"

namespace {

constexpr int kThreads = 256;
constexpr int kSide = 16;
constexpr int kVector = kVectorLength<Accumulator>;
/** From row to row of a tile of q, k, v or gradO: the vectors of neighbouring rows lie in different banks. */
constexpr int kPitch = HEAD_DIM + kVector;
/** From row to row of a tile of weights. */
constexpr int kWeightPitch = BLOCK_N + kVector;
constexpr int kRowsM = BLOCK_M / kSide;
constexpr int kRowsN = BLOCK_N / kSide;
constexpr int kColumns = HEAD_DIM / kSide;

__device__ __forceinline__ int thread_x() { return threadIdx.x % kSide; }
__device__ __forceinline__ int thread_y() { return threadIdx.x / kSide; }

/** What a block works on. Under a causal mask the tiles with the most work come first. */
struct Work {
  int tile, head, batch;

  __device__ Work(int tiles, int heads, bool lastFirst) {
    const int index = blockIdx.x % tiles, rest = blockIdx.x / tiles;
    tile = lastFirst ? tiles - 1 - index : index;
    head = rest % heads;
    batch = rest / heads;
  }
};

/** Rows first, first + 1, ... of a head as a tile; zeros beyond the last row and the last column. */
template <int kRows>
__device__ void load_tile(Accumulator* tile, const ELEMENT* head, int64 stride, int first, int rows, int columns) {
  for (int i = threadIdx.x; i < kRows * HEAD_DIM; i += kThreads) {
    const int row = i / HEAD_DIM, column = i % HEAD_DIM;
    const bool exists = first + row < rows && column < columns;
    tile[row * kPitch + column] = exists ? to_compute(head[(first + row) * stride + column]) : Accumulator(0);
  }
}

/** Writes factor · sums to those rows of a head that exist. */
template <int kRows>
__device__ void store_rows(ELEMENT* head, int64 stride, int first, int rows, int columns,
                           const Accumulator (&sums)[kRows][kColumns], const Accumulator (&factors)[kRows]) {
#pragma unroll
  for (int i = 0; i < kRows; i++) {
    const int row = first + thread_y() + i * kSide;
#pragma unroll
    for (int j = 0; j < kColumns; j++) {
      const int column = thread_x() + j * kSide;
      if (row < rows && column < columns) head[row * stride + column] = convert<ELEMENT>(factors[i] * sums[i][j]);
    }
  }
}

// Never part of a fused multiply-add: backward must find the scores, to the bit, that the maximum was taken of.
__device__ __forceinline__ Accumulator rounded_product(Accumulator a, Accumulator b) {
  if constexpr (sizeof(Accumulator) == sizeof(double)) {
    return __dmul_rn(a, b);
  } else {
    return __fmul_rn(a, b);
  }
}

/** sums += a · bᵀ over the head dimension, for tiles a and b. */
template <int kRows, int kCols>
__device__ __forceinline__ void add_dot_products(Accumulator (&sums)[kRows][kCols], const Accumulator* a,
                                                 const Accumulator* b) {
#pragma unroll 2
  for (int k = 0; k < HEAD_DIM; k += kVector) {
    Vector<Accumulator, kVector> left[kRows], right[kCols];
#pragma unroll
    for (int i = 0; i < kRows; i++) left[i] = load_vector<kVector>(a + (thread_y() + i * kSide) * kPitch + k);
#pragma unroll
    for (int j = 0; j < kCols; j++) right[j] = load_vector<kVector>(b + (thread_x() + j * kSide) * kPitch + k);
#pragma unroll
    for (int v = 0; v < kVector; v++) {
#pragma unroll
      for (int i = 0; i < kRows; i++) {
#pragma unroll
        for (int j = 0; j < kCols; j++) sums[i][j] += left[i][v] * right[j][v];
      }
    }
  }
}

/** sums += w · b for weights w, whose element (row, k) lies at row · rowStep + k · kStep, and the kLength rows of b. */
template <int kLength, int kRows>
__device__ __forceinline__ void add_weighted_rows(Accumulator (&sums)[kRows][kColumns], const Accumulator* weights,
                                                  int rowStep, int kStep, const Accumulator* b) {
#pragma unroll 2
  for (int k = 0; k < kLength; k++) {
    Accumulator left[kRows], right[kColumns];
#pragma unroll
    for (int i = 0; i < kRows; i++) left[i] = weights[(thread_y() + i * kSide) * rowStep + k * kStep];
#pragma unroll
    for (int j = 0; j < kColumns; j++) right[j] = b[k * kPitch + thread_x() + j * kSide];
#pragma unroll
    for (int i = 0; i < kRows; i++) {
#pragma unroll
      for (int j = 0; j < kColumns; j++) sums[i][j] += left[i] * right[j];
    }
  }
}

__device__ __forceinline__ void store_weights(Accumulator* tile, const Accumulator (&weights)[kRowsM][kRowsN]) {
#pragma unroll
  for (int i = 0; i < kRowsM; i++) {
#pragma unroll
    for (int j = 0; j < kRowsN; j++) {
      tile[(thread_y() + i * kSide) * kWeightPitch + thread_x() + j * kSide] = weights[i][j];
    }
  }
}

/** A row's statistics as its keys go by (Milakov & Gimelshein 2018); the sum is this thread's share. */
struct RunningRow {
  Accumulator largest = lowest<Accumulator>();
  Accumulator sum = 0;

  /** Turns this thread's scores of the row into weights; gives the factor of all that was summed before. */
  __device__ __forceinline__ Accumulator add(Accumulator (&scores)[kRowsN]) {
    Accumulator next = lowest<Accumulator>();
#pragma unroll
    for (int j = 0; j < kRowsN; j++) next = larger(next, scores[j]);
    next = larger(largest, warp_reduce<kSide>(next, Larger{}));
    const Accumulator shift = finite_shift(next);
    const Accumulator factor = exp(largest - shift);
    largest = next;
    sum *= factor;
#pragma unroll
    for (int j = 0; j < kRowsN; j++) {
      scores[j] = exp(scores[j] - shift);
      sum += scores[j];
    }
    return factor;
  }
};

/** What of a query's row the gradients need: weights are factor · exp(score - shift). */
struct SavedRow {
  Accumulator shift = 0, factor = 1, delta = 0;

  __device__ __forceinline__ SavedRow(const FlashParams& p, int64 rows, int query) {
    if (query >= p.queries) return;
    if (p.statistics) {
      shift = p.statistics[2 * (rows + query)];
      factor = 1 / p.statistics[2 * (rows + query) + 1];
    } else {
      shift = finite_shift(p.lse[rows + query]);
    }
    delta = p.delta[rows + query];
  }
};

/**
 * Of a tile of queries and a tile of keys: the weights P = exp(S - lse), and dS = P ∘ (dP - delta), the gradient of
 * the scores, for S = scale · Q Kᵀ and dP = dO Vᵀ.
 */
struct TileGradients {
  Accumulator weights[kRowsM][kRowsN] = {};
  Accumulator scores[kRowsM][kRowsN] = {};

  __device__ __forceinline__ TileGradients(const FlashParams& p, int64 rows, int query, int key, const Accumulator* q,
                                           const Accumulator* k, const Accumulator* gradO, const Accumulator* v) {
    const Accumulator scale = static_cast<Accumulator>(p.scale);
    add_dot_products(weights, q, k);
    add_dot_products(scores, gradO, v);
#pragma unroll
    for (int i = 0; i < kRowsM; i++) {
      const int row = query + thread_y() + i * kSide;
      const SavedRow saved(p, rows, row);
#pragma unroll
      for (int j = 0; j < kRowsN; j++) {
        const bool visible = is_visible(p, row, key + thread_x() + j * kSide);
        const Accumulator weight = saved.factor * exp(rounded_product(scale, weights[i][j]) - saved.shift);
        weights[i][j] = visible ? weight : Accumulator(0);
        scores[i][j] = visible ? weight * (scores[i][j] - saved.delta) : Accumulator(0);
      }
    }
  }
};

template <int kRows>
__device__ __forceinline__ void fill(Accumulator (&values)[kRows], Accumulator value) {
#pragma unroll
  for (int i = 0; i < kRows; i++) values[i] = value;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads) flash_forward(const __grid_constant__ FlashParams p) {
  extern __shared__ __align__(16) Accumulator shared[];
  Accumulator* const q = shared;
  Accumulator* const keysOrValues = q + BLOCK_M * kPitch;
  Accumulator* const weights = keysOrValues + BLOCK_N * kPitch;

  const Work work((p.queries + BLOCK_M - 1) / BLOCK_M, p.heads, p.causal);
  const int query = work.tile * BLOCK_M, keyHead = work.head / (p.heads / p.keyHeads);
  const ELEMENT* const k = head_of(p.k, p.kStrides, work.batch, keyHead);
  const ELEMENT* const v = head_of(p.v, p.vStrides, work.batch, keyHead);
  const Accumulator scale = static_cast<Accumulator>(p.scale);
  load_tile<BLOCK_M>(q, head_of(p.q, p.qStrides, work.batch, work.head), p.qStrides.row, query, p.queries, p.headDim);

  RunningRow rows[kRowsM];
  Accumulator sums[kRowsM][kColumns] = {};
  const int lastQuery = min(query + BLOCK_M, p.queries) - 1;
  const int end = visible_keys(p, lastQuery);
  for (int key = 0; key < end; key += BLOCK_N) {
    __syncthreads();  // the values of the tile before have been read
    load_tile<BLOCK_N>(keysOrValues, k, p.kStrides.row, key, p.keys, p.headDim);
    __syncthreads();
    Accumulator scores[kRowsM][kRowsN] = {};
    add_dot_products(scores, q, keysOrValues);
#pragma unroll
    for (int i = 0; i < kRowsM; i++) {
#pragma unroll
      for (int j = 0; j < kRowsN; j++) {
        const bool visible = is_visible(p, query + thread_y() + i * kSide, key + thread_x() + j * kSide);
        scores[i][j] = visible ? rounded_product(scale, scores[i][j]) : lowest<Accumulator>();
      }
      const Accumulator factor = rows[i].add(scores[i]);
#pragma unroll
      for (int j = 0; j < kColumns; j++) sums[i][j] *= factor;
    }
    __syncthreads();  // the keys have been read
    store_weights(weights, scores);
    load_tile<BLOCK_N>(keysOrValues, v, p.vStrides.row, key, p.keys, p.headDim);
    __syncthreads();
    add_weighted_rows<BLOCK_N>(sums, weights, kWeightPitch, 1, keysOrValues);
  }

  Accumulator factors[kRowsM];
#pragma unroll
  for (int i = 0; i < kRowsM; i++) {
    const Accumulator sum = warp_reduce<kSide>(rows[i].sum, Sum{});
    factors[i] = sum == 0 ? Accumulator(0) : 1 / sum;
    const int row = query + thread_y() + i * kSide;
    if (thread_x() == 0 && row < p.queries) {
      const int64 at = row_offset(p, work.batch, work.head) + row;
      p.lse[at] = rows[i].largest + log(sum);
      if (p.statistics) {
        p.statistics[2 * at] = finite_shift(rows[i].largest);
        p.statistics[2 * at + 1] = sum == 0 ? Accumulator(1) : sum;
      }
    }
  }
  ELEMENT* const o = head_of(p.o, p.oStrides, work.batch, work.head);
  store_rows(o, p.oStrides.row, query, p.queries, p.headDim, sums, factors);
}

extern "C" __global__ void __launch_bounds__(kThreads) flash_delta(const __grid_constant__ FlashParams p) {
  const int64 row = (static_cast<int64>(blockIdx.x) * kThreads + threadIdx.x) / 32;
  if (row >= static_cast<int64>(p.batch) * p.heads * p.queries) return;
  const int query = row % p.queries, head = row / p.queries % p.heads, batch = row / p.queries / p.heads;
  const ELEMENT* const o = head_of(p.o, p.oStrides, batch, head) + query * p.oStrides.row;
  const ELEMENT* const gradO = head_of(p.gradO, p.gradOStrides, batch, head) + query * p.gradOStrides.row;
  Accumulator sum = 0;
  for (int i = threadIdx.x % 32; i < p.headDim; i += 32) sum += to_compute(o[i]) * to_compute(gradO[i]);
  sum = warp_reduce(sum, Sum{});
  if (threadIdx.x % 32 == 0) p.delta[row] = p.gradLse ? sum - p.gradLse[row] : sum;
}

extern "C" __global__ void __launch_bounds__(kThreads) flash_grad_keys(const __grid_constant__ FlashParams p) {
  extern __shared__ __align__(16) Accumulator shared[];
  Accumulator* const q = shared;
  Accumulator* const gradO = q + BLOCK_M * kPitch;
  Accumulator* const k = gradO + BLOCK_M * kPitch;
  Accumulator* const v = k + BLOCK_N * kPitch;
  Accumulator* const weights = v + BLOCK_N * kPitch;

  const Work work((p.keys + BLOCK_N - 1) / BLOCK_N, p.keyHeads, false);
  const int key = work.tile * BLOCK_N, group = p.heads / p.keyHeads;
  load_tile<BLOCK_N>(k, head_of(p.k, p.kStrides, work.batch, work.head), p.kStrides.row, key, p.keys, p.headDim);
  load_tile<BLOCK_N>(v, head_of(p.v, p.vStrides, work.batch, work.head), p.vStrides.row, key, p.keys, p.headDim);

  Accumulator sumsK[kRowsN][kColumns] = {}, sumsV[kRowsN][kColumns] = {};
  const int start = first_query(p, key) / BLOCK_M * BLOCK_M;
  for (int head = work.head * group; head < (work.head + 1) * group; head++) {
    const ELEMENT* const qHead = head_of(p.q, p.qStrides, work.batch, head);
    const ELEMENT* const gradHead = head_of(p.gradO, p.gradOStrides, work.batch, head);
    for (int query = start; query < p.queries; query += BLOCK_M) {
      __syncthreads();  // the tile before has been read
      load_tile<BLOCK_M>(q, qHead, p.qStrides.row, query, p.queries, p.headDim);
      load_tile<BLOCK_M>(gradO, gradHead, p.gradOStrides.row, query, p.queries, p.headDim);
      __syncthreads();
      const TileGradients tile(p, row_offset(p, work.batch, head), query, key, q, k, gradO, v);
      store_weights(weights, tile.weights);
      __syncthreads();
      add_weighted_rows<BLOCK_M>(sumsV, weights, 1, kWeightPitch, gradO);
      __syncthreads();
      store_weights(weights, tile.scores);
      __syncthreads();
      add_weighted_rows<BLOCK_M>(sumsK, weights, 1, kWeightPitch, q);
    }
  }

  Accumulator factors[kRowsN];
  fill(factors, static_cast<Accumulator>(p.scale));
  ELEMENT* const gradK = head_of(p.gradK, p.gradKStrides, work.batch, work.head);
  store_rows(gradK, p.gradKStrides.row, key, p.keys, p.headDim, sumsK, factors);
  fill(factors, Accumulator(1));
  ELEMENT* const gradV = head_of(p.gradV, p.gradVStrides, work.batch, work.head);
  store_rows(gradV, p.gradVStrides.row, key, p.keys, p.headDim, sumsV, factors);
}

extern "C" __global__ void __launch_bounds__(kThreads) flash_grad_queries(const __grid_constant__ FlashParams p) {
  extern __shared__ __align__(16) Accumulator shared[];
  Accumulator* const q = shared;
  Accumulator* const gradO = q + BLOCK_M * kPitch;
  Accumulator* const k = gradO + BLOCK_M * kPitch;
  Accumulator* const v = k + BLOCK_N * kPitch;
  Accumulator* const weights = v + BLOCK_N * kPitch;

  const Work work((p.queries + BLOCK_M - 1) / BLOCK_M, p.heads, p.causal);
  const int query = work.tile * BLOCK_M, keyHead = work.head / (p.heads / p.keyHeads);
  const ELEMENT* const kHead = head_of(p.k, p.kStrides, work.batch, keyHead);
  const ELEMENT* const vHead = head_of(p.v, p.vStrides, work.batch, keyHead);
  load_tile<BLOCK_M>(q, head_of(p.q, p.qStrides, work.batch, work.head), p.qStrides.row, query, p.queries, p.headDim);
  load_tile<BLOCK_M>(gradO, head_of(p.gradO, p.gradOStrides, work.batch, work.head), p.gradOStrides.row, query,
                     p.queries, p.headDim);

  Accumulator sums[kRowsM][kColumns] = {};
  const int lastQuery = min(query + BLOCK_M, p.queries) - 1;
  const int end = visible_keys(p, lastQuery);
  for (int key = 0; key < end; key += BLOCK_N) {
    __syncthreads();  // the tile before has been read
    load_tile<BLOCK_N>(k, kHead, p.kStrides.row, key, p.keys, p.headDim);
    load_tile<BLOCK_N>(v, vHead, p.vStrides.row, key, p.keys, p.headDim);
    __syncthreads();
    const TileGradients tile(p, row_offset(p, work.batch, work.head), query, key, q, k, gradO, v);
    store_weights(weights, tile.scores);
    __syncthreads();
    add_weighted_rows<BLOCK_N>(sums, weights, kWeightPitch, 1, k);
  }

  Accumulator factors[kRowsM];
  fill(factors, static_cast<Accumulator>(p.scale));
  ELEMENT* const gradQ = head_of(p.gradQ, p.gradQStrides, work.batch, work.head);
  store_rows(gradQ, p.gradQStrides.row, query, p.queries, p.headDim, sums, factors);
}
