// Joins the partial results of flash_mma_forward where several blocks have shared the keys: a row's Σ weights · v and
// Σ weights are those of its parts, brought to the largest score of all.
//
//   flash_mma_join   o, lse and, for float32, statistics
//     arguments FlashParams (flash_params.cuh), float* partial and int32 splits (flash_mma_forward.cuh)
//     grid      (rows of lse / 4, rounded up, 1, 1): a warp for each row
//     block     (128, 1, 1)
// macros
//   ELEMENT, PRODUCTS, HEAD_DIM   as for flash_mma_forward.cu

#include "flash_mma_forward.cuh"

namespace {

constexpr int kThreads = 128;
constexpr int kColumns = (HEAD_DIM + 31) / 32;

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
    flash_mma_join(const __grid_constant__ FlashParams p, float* partial, int32 splits) {
  const int64 at = (static_cast<int64>(blockIdx.x) * kThreads + threadIdx.x) / 32;
  if (at >= row_offset(p, p.batch, 0)) return;
  const Exponent exponent(p.scale);
  float largest = lowest<float>();
  for (int split = 0; split < splits; split++) {
    largest = fmaxf(largest, PartialRows(p, partial, splits, split).statistics(at)[0]);
  }
  const float shift = exponent.shift(largest);
  float sum = 0, sums[kColumns] = {};
  for (int split = 0; split < splits; split++) {
    const PartialRows rows(p, partial, splits, split);
    const float factor = exponent.weight(rows.statistics(at)[0], shift);
    sum += factor * rows.statistics(at)[1];
#pragma unroll
    for (int i = 0; i < kColumns; i++) {
      const int column = lane_index() + 32 * i;
      if (column < HEAD_DIM) sums[i] += factor * rows.sums(at)[column];
    }
  }
  if (lane_index() == 0) write_statistics(p, at, exponent, largest, sum);
  const int query = at % p.queries, head = at / p.queries % p.heads, batch = at / p.queries / p.heads;
  ELEMENT* const o = head_of(p.o, p.oStrides, batch, head) + query * p.oStrides.row;
  const float factor = sum == 0 ? 0.0f : 1 / sum;
#pragma unroll
  for (int i = 0; i < kColumns; i++) {
    const int column = lane_index() + 32 * i;
    if (column < p.headDim) o[column] = convert<ELEMENT>(factor * sums[i]);
  }
}
