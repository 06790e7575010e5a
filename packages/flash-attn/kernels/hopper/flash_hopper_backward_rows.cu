// What goes before and after flash_hopper_backward: the rows' delta and log-sum-exps, and gradQ from its float32 sums.
//
//   flash_hopper_before   delta = rowsum(gradO ∘ o) - gradLse, lseLog2 = lse · log2 e; sums = 0, or where dQ is summed in
//                         order: turns = 0, and gradQ = 0 in tiles of queries that see no key
//     grid   (paddedQueries · kThreadsOfRow / 256, batch · heads, 1); kThreadsOfRow is 16 for HEAD_DIM 96 and 128, else 8
//   flash_hopper_after    gradQ = scale · sums; not where dQ is summed in order
//     grid   (rowTiles, batch · heads, 1)
//   block    (256, 1, 1) of both
//   argument HopperBackwardParams (flash_hopper_backward.cuh)
// macros as in flash_hopper_backward.cu: ELEMENT, HEAD_DIM, CHUNK, NARROW_PADDED, BLOCK_M, SUM_BUFFERS

#include "flash_hopper_backward.cuh"

namespace {

constexpr int kPieces = HEAD_DIM / 8;  // 16 bytes each
constexpr int kThreadsOfRow = HEAD_DIM > 80 ? 16 : 8;
constexpr int kRowsOfBlock = 256 / kThreadsOfRow;
constexpr float kLog2e = 1.4426950408889634f;

__device__ __forceinline__ float dot_of_pieces(const ELEMENT* a, const ELEMENT* b) {
  const Vector<ELEMENT, 8> x = load_vector<8>(a), y = load_vector<8>(b);
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < 8; i++) sum += to_float(x[i]) * to_float(y[i]);
  return sum;
}

__device__ __forceinline__ float row_dot(const HopperBackwardParams& p, int batch, int head, int row, int part) {
  if (row >= p.queries) return 0.0f;
  const ELEMENT* const o = head_of(p.o, p.oStrides, batch, head) + row * p.oStrides.row;
  const ELEMENT* const gradO = head_of(p.gradORows, p.gradOStrides, batch, head) + row * p.gradOStrides.row;
  float sum = 0.0f;
#pragma unroll
  for (int piece = part; piece < kPieces; piece += kThreadsOfRow) {
    if (piece * 8 < p.columns) sum += dot_of_pieces(o + piece * 8, gradO + piece * 8);
  }
  return sum;
}

/** Where dQ is summed in order: no block has begun, and none has added to the tiles that begin in these rows. */
__device__ __forceinline__ void start_turns(const HopperBackwardParams& p, int headOfAll, int firstRow) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0 && blockIdx.y == 0) p.turns[0] = 0;
  if (firstRow % BLOCK_M == 0) *turn_of(p, headOfAll, firstRow / BLOCK_M) = 0;
}

/** Where dQ is summed in order: gradQ of a query that sees no key, in a tile that no block visits. */
__device__ __forceinline__ void clear_gradient(const HopperBackwardParams& p, int batch, int head, int row, int part) {
  ELEMENT* const gradQ = head_of(p.gradQ, p.gradQStrides, batch, head) + row * p.gradQStrides.row;
  const Vector<uint32, 4> zeros{};
  for (int piece = part; piece * 8 < p.columns; piece += kThreadsOfRow) {
    store_vector(reinterpret_cast<uint32*>(gradQ + piece * 8), zeros);
  }
}

// Rows of gradQ leave in whole sectors by way of shared memory, half of a tile by each warpgroup. A pair is a word; rows
// are padded against bank conflicts.
constexpr int kRowWords = kSumColumns / 2 + 4, kRowPieces = kSumColumns / 8;

/** This thread's sums number 4 · i and on, as wgmma.cuh has them. */
__device__ __forceinline__ void place_fragment(uint32* rows, int i, const Vector<float, 4>& x, float scale) {
  const int thread = threadIdx.x % 128, lane = thread % 32;
  uint32* const pair = rows + (thread / 32 * 16 + lane / 4) * kRowWords + i * 4 + lane % 4;
  pair[0] = pack_pair<ELEMENT>(x[0] * scale, x[1] * scale);
  pair[8 * kRowWords] = pack_pair<ELEMENT>(x[2] * scale, x[3] * scale);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256)
    flash_hopper_before(const __grid_constant__ HopperBackwardParams p) {
  const int headOfAll = blockIdx.y, batch = headOfAll / p.heads, head = headOfAll - batch * p.heads;
  const int padded = p.rowTiles * BLOCK_M, firstRow = blockIdx.x * kRowsOfBlock;
  const int row = firstRow + threadIdx.x / kThreadsOfRow, part = threadIdx.x % kThreadsOfRow;

  float sum = row_dot(p, batch, head, row, part);
#pragma unroll
  for (int distance = kThreadsOfRow / 2; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  }
  const int64 first = static_cast<int64>(headOfAll) * padded;
  if (part == 0) {
    const int64 at = static_cast<int64>(headOfAll) * p.queries + row;
    const bool exists = row < p.queries;
    const float lse = exists ? p.lse[at] : lowest<float>();
    p.delta[first + row] = exists && p.gradLse ? sum - p.gradLse[at] : sum;
    // Rows that see no key, or are past the last: exp2(score - inf) = 0.
    p.lseLog2[first + row] = lse == lowest<float>() ? -lowest<float>() : lse * kLog2e;
  }
  if (kOrdered) {
    start_turns(p, headOfAll, firstRow);
    if (row < min(p.queries, p.unseenTiles * BLOCK_M)) clear_gradient(p, batch, head, row, part);
  } else {
    const Vector<float, 4> zeros{};
    float* const sums = p.sums + (first + firstRow) * HEAD_DIM;
    for (int i = threadIdx.x; i < kRowsOfBlock * HEAD_DIM / 4; i += 256) store_vector(sums + 4 * i, zeros);
  }
}

extern "C" __global__ void __launch_bounds__(256) flash_hopper_after(const __grid_constant__ HopperBackwardParams p) {
  __shared__ __align__(16) uint32 rows[kWarpgroups][64 * kRowWords];

  const int headOfAll = blockIdx.y, batch = headOfAll / p.heads, head = headOfAll - batch * p.heads;
  const int warpgroup = threadIdx.x / 128, thread = threadIdx.x % 128;
  const float* const sums = sums_of(p, headOfAll, blockIdx.x) + fragment_offset(warpgroup);
#pragma unroll
  for (int i = 0; i < kSumsOfThread / 4; i++) {
    place_fragment(rows[warpgroup], i, load_vector<4>(sums + i * 512), p.scale);
  }
  __syncthreads();

  const int firstRow = blockIdx.x * BLOCK_M + (kHalvesColumns ? 0 : warpgroup * 64);
  const int firstColumn = kHalvesColumns ? warpgroup * kSumColumns : 0;
  ELEMENT* const gradQ = head_of(p.gradQ, p.gradQStrides, batch, head) + firstColumn;
#pragma unroll
  for (int i = 0; i < 64 * kRowPieces / 128; i++) {
    const int index = i * 128 + thread, row = index / kRowPieces, piece = index % kRowPieces;
    if (firstRow + row >= p.queries || firstColumn + piece * 8 >= p.columns) continue;
    const uint32* const source = &rows[warpgroup][row * kRowWords + piece * 4];
    uint32* const target =
        reinterpret_cast<uint32*>(gradQ + (firstRow + row) * p.gradQStrides.row + piece * 8);
    store_vector(target, load_vector<4>(source));
  }
}
