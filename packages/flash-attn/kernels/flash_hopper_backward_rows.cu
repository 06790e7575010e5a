// What goes before and behind flash_hopper_backward: the rows' delta and log-sum-exps, and gradQ from its float32 sums.
//
//   flash_hopper_before   delta = rowsum(gradO ∘ o) - gradLse, lseLog2 = lse · log2 e, sums = 0
//     grid   (paddedQueries · kThreadsOfRow / 256, batch · heads, 1); kThreadsOfRow is 16 for HEAD_DIM 128, else 8
//   flash_hopper_after    gradQ = scale · sums
//     grid   (rowTiles, batch · heads, 1)
//   block    (256, 1, 1) of both
//   argument HopperBackwardParams (flash_hopper_backward.cuh)
// macros as in flash_hopper_backward.cu: ELEMENT, HEAD_DIM, CHUNK, BLOCK_M

#include "flash_hopper_backward.cuh"

namespace {

constexpr int kPieces = HEAD_DIM / 8;  // 16 bytes each
constexpr int kThreadsOfRow = HEAD_DIM == 128 ? 16 : 8;
constexpr int kRowsOfBlock = 256 / kThreadsOfRow;
constexpr float kLog2e = 1.4426950408889634f;
constexpr float kInfinity = __builtin_huge_valf();

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
    sum += dot_of_pieces(o + piece * 8, gradO + piece * 8);
  }
  return sum;
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
    const float lse = exists ? p.lse[at] : -kInfinity;
    p.delta[first + row] = exists && p.gradLse ? sum - p.gradLse[at] : sum;
    // Rows that see no key, or are none: exp2(score - inf) = 0.
    p.lseLog2[first + row] = lse == -kInfinity ? kInfinity : lse * kLog2e;
  }
  const Vector<float, 4> zeros{};
  float* const sums = p.sums + (first + firstRow) * HEAD_DIM;
  for (int i = threadIdx.x; i < kRowsOfBlock * HEAD_DIM / 4; i += 256) store_vector(sums + 4 * i, zeros);
}

extern "C" __global__ void __launch_bounds__(256) flash_hopper_after(const __grid_constant__ HopperBackwardParams p) {
  // Rows leave in whole sectors by way of shared memory. A pair is a word; rows are padded against bank conflicts.
  constexpr int kRowWords = kSumColumns / 2 + 4, kRowPieces = kSumColumns / 8;
  __shared__ __align__(16) uint32 rows[kWarpgroups][64 * kRowWords];

  const int headOfAll = blockIdx.y, batch = headOfAll / p.heads, head = headOfAll - batch * p.heads;
  const int warpgroup = threadIdx.x / 128, thread = threadIdx.x % 128, lane = thread % 32;
  const float* const fragments = fragments_of(p, headOfAll, blockIdx.x, warpgroup);
  const int word = (thread / 32 * 16 + lane / 4) * kRowWords + lane % 4;
#pragma unroll
  for (int i = 0; i < kSumsOfThread / 4; i++) {
    const Vector<float, 4> x = load_vector<4>(fragments + i * 512);
    rows[warpgroup][word + i * 4] = pack_pair<ELEMENT>(x[0] * p.scale, x[1] * p.scale);
    rows[warpgroup][word + 8 * kRowWords + i * 4] = pack_pair<ELEMENT>(x[2] * p.scale, x[3] * p.scale);
  }
  __syncthreads();

  const int firstRow = blockIdx.x * BLOCK_M + (kHalvesColumns ? 0 : warpgroup * 64);
  const int firstColumn = kHalvesColumns ? warpgroup * kSumColumns : 0;
  ELEMENT* const gradQ = head_of(p.gradQ, p.gradQStrides, batch, head) + firstColumn;
#pragma unroll
  for (int i = 0; i < 64 * kRowPieces / 128; i++) {
    const int index = i * 128 + thread, row = index / kRowPieces, piece = index % kRowPieces;
    if (firstRow + row >= p.queries) continue;
    const uint32* const source = &rows[warpgroup][row * kRowWords + piece * 4];
    uint32* const target =
        reinterpret_cast<uint32*>(gradQ + (firstRow + row) * p.gradQStrides.row + piece * 8);
    store_vector(target, load_vector<4>(source));
  }
}
