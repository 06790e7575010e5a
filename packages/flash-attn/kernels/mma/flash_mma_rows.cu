// What goes before and after flash_mma_backward: see flash_mma_backward.cuh for what they pass on.
//
//   flash_mma_before   rows, zeros in sums and, unless it is null, in turns
//     arguments FlashParams (flash_params.cuh), float* rows, float* sums, int32* turns
//   flash_mma_after    gradQ = scale · sums
//     arguments FlashParams, const float* sums
//     dynamic shared memory   BLOCK_M · (sizeof(ELEMENT) · HEAD_DIM + 16) bytes
// both   grid (tiles · heads · batch, 1, 1), with tiles of queries; block (128, 1, 1)
// macros
//   ELEMENT, HEAD_DIM, BLOCK_M, PARTS   as for flash_mma_backward.cu
//   PRODUCTS   1

#include "flash_mma_backward.cuh"

namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;

/** What a block works on. */
struct QueryTile {
  int tile, head, batch;
  __device__ __forceinline__ explicit QueryTile(const FlashParams& p) {
    const int tiles = query_tiles(p), rest = blockIdx.x / tiles;
    tile = blockIdx.x % tiles;
    head = rest % p.heads;
    batch = rest / p.heads;
  }
};

/** Writes the shift and the factor of a query's weights. */
__device__ __forceinline__ void write_weights(const FlashParams& p, float* rows, int64 at) {
  if (p.statistics) {
    rows[0] = p.statistics[2 * at];
    rows[BLOCK_M] = 1 / p.statistics[2 * at + 1];
  } else {
    rows[0] = finite_shift(p.lse[at]) * kLog2E;
    rows[BLOCK_M] = 1;
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
    flash_mma_before(const __grid_constant__ FlashParams p, float* rowsMemory, float* sumsMemory, int32* turns) {
  const QueryTile work(p);
  const HeadRows<const ELEMENT> o(p.o, p.oStrides, work.batch, work.head, p.queries, p.headDim);
  const HeadRows<const ELEMENT> gradO(p.gradO, p.gradOStrides, work.batch, work.head, p.queries, p.headDim);
  float* const rows = rowsMemory + static_cast<int64>(blockIdx.x) * (3 * BLOCK_M);
  const bool isWide = o.aligned && gradO.aligned;
  for (int i = warp_index(); i < BLOCK_M; i += kWarps) {
    const int query = work.tile * BLOCK_M + i;
    float delta = 0;
    if (query < p.queries) {
      const ELEMENT *const oRow = o.head + query * o.stride, *const gradRow = gradO.head + query * gradO.stride;
      if (isWide) {
        for (int column = lane_index() * kVector; column < p.headDim; column += 32 * kVector) {
          const Vector<ELEMENT, kVector> x = load_vector<kVector>(oRow + column), y = load_vector<kVector>(gradRow + column);
#pragma unroll
          for (int j = 0; j < kVector; j++) delta += to_compute(x[j]) * to_compute(y[j]);
        }
      } else {
        for (int j = lane_index(); j < p.headDim; j += 32) delta += to_compute(oRow[j]) * to_compute(gradRow[j]);
      }
    }
    delta = warp_reduce(delta, Sum{});
    if (lane_index() != 0) continue;
    if (query < p.queries) {
      const int64 at = row_offset(p, work.batch, work.head) + query;
      write_weights(p, rows + i, at);
      rows[2 * BLOCK_M + i] = p.gradLse ? delta - p.gradLse[at] : delta;
    } else {
      rows[i] = rows[BLOCK_M + i] = rows[2 * BLOCK_M + i] = 0;
    }
  }
  float* const sums = sumsMemory + static_cast<int64>(blockIdx.x) * (BLOCK_M * HEAD_DIM);
  for (int i = threadIdx.x * 4; i < BLOCK_M * HEAD_DIM; i += kThreads * 4) store_vector(sums + i, Vector<float, 4>{});
  if (turns == nullptr) return;
  for (int i = threadIdx.x; i < PARTS; i += kThreads) turns[1 + blockIdx.x * PARTS + i] = 0;
  if (blockIdx.x == 0 && threadIdx.x == 0) turns[0] = 0;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    flash_mma_after(const __grid_constant__ FlashParams p, const float* sumsMemory) {
  extern __shared__ __align__(16) ELEMENT shared[];
  const QueryTile work(p);
  const float* const sums = sumsMemory + static_cast<int64>(blockIdx.x) * (BLOCK_M * HEAD_DIM);
  const HeadRows<ELEMENT> gradQ(p.gradQ, p.gradQStrides, work.batch, work.head, p.queries, p.headDim);
  const float scale = static_cast<float>(p.scale), factors[2] = {scale, scale};
  for (int rowTile = warp_index(); rowTile < kRowTilesOfQueries; rowTile += kWarps) {
    float x[2 * kPairs][4];
#pragma unroll
    for (int pair = 0; pair < kPairs; pair++) {
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const float* const four = sums + sum_offset(rowTile, pair, half);
#pragma unroll
        for (int i = 0; i < 4; i++) x[2 * pair + i / 2][2 * half + i % 2] = four[i * kSumStep];
      }
    }
    ELEMENT* const rows = shared + 16 * rowTile * kPitch;
    write_sums(rows, x, factors);
    __syncwarp();
    store_rows<16, HEAD_DIM>(gradQ, rows, work.tile * BLOCK_M + 16 * rowTile, 0);
  }
}
