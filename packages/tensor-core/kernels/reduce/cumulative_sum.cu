// Running sums along one dimension, from the front or from the back, in double or int64.
//
// kernels  cumulative_sum_rows(x, y, length, reverse)
//            x, y [rows, length]: y[r, i] = Σ x[r, j] over j <= i, or j >= i if reverse;   grid rows, block 256
//          cumulative_sum_columns(x, y, columns, length, inner, reverse)
//            the same along the middle of [outer, length, inner], columns = outer · inner
//            grid ceil(columns / 256), block 256; a thread walks along a column
//          x: ELEMENT, y: RESULT; counts int64, reverse int32
//   macros ELEMENT, RESULT; SUM: double or int64
// Bound by memory: each element is read and written once. The sums are wide, so that no row is too long for them.
#include "prelude.cuh"

using Element = ELEMENT;
using Result = RESULT;

constexpr int kThreads = 256;
constexpr int kItems = 4;
constexpr int kTile = kThreads * kItems;

/** The sum over the lanes up to this one. */
__device__ __forceinline__ SUM warp_inclusive_sum(SUM x) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const SUM before = __shfl_up_sync(kFullWarp, x, distance);
    if (lane >= distance) x += before;
  }
  return x;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    cumulative_sum_rows(const Element* x, Result* y, int64 length, int reverse) {
  __shared__ SUM warpSums[kThreads / 32];
  const int warp = threadIdx.x / 32;
  const int64 row = static_cast<int64>(blockIdx.x) * length;
  SUM carry = 0;
  for (int64 tile = 0; tile < length; tile += kTile) {
    const int64 first = tile + threadIdx.x * kItems;
    SUM sums[kItems];
    SUM total = 0;
#pragma unroll
    for (int i = 0; i < kItems; i++) {
      const int64 at = reverse ? length - 1 - (first + i) : first + i;
      if (first + i < length) total += static_cast<SUM>(to_compute(x[row + at]));
      sums[i] = total;
    }
    const SUM inclusive = warp_inclusive_sum(total);
    if (threadIdx.x % 32 == 31) warpSums[warp] = inclusive;
    __syncthreads();
    SUM before = carry;
    for (int other = 0; other < kThreads / 32; other++) {
      if (other < warp) before += warpSums[other];
      carry += warpSums[other];
    }
    // The lanes before this one: not inclusive - total, which would be NaN after an infinity.
    const SUM lanesBefore = __shfl_up_sync(kFullWarp, inclusive, 1);
    if (threadIdx.x % 32 > 0) before += lanesBefore;
#pragma unroll
    for (int i = 0; i < kItems; i++) {
      const int64 at = reverse ? length - 1 - (first + i) : first + i;
      if (first + i < length) y[row + at] = convert<Result>(static_cast<compute_t<Result>>(before + sums[i]));
    }
    __syncthreads();  // before the next tile's sums
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    cumulative_sum_columns(const Element* x, Result* y, int64 columns, int64 length, int64 inner, int reverse) {
  const int64 column = static_cast<int64>(blockIdx.x) * kThreads + threadIdx.x;
  if (column >= columns) return;
  const int64 start = column / inner * length * inner + column % inner;
  SUM sum = 0;
#pragma unroll 4
  for (int64 i = 0; i < length; i++) {
    const int64 at = start + (reverse ? length - 1 - i : i) * inner;
    sum += static_cast<SUM>(to_compute(x[at]));
    y[at] = convert<Result>(static_cast<compute_t<Result>>(sum));
  }
}
