// Sums of rows, in a fixed order: the gradients of norms' weights and biases from the partial sums of norm_backward.cu.
//
// kernel   norm_fold(folds, count, columns)
//            results[i] = Σ of the `count` rows of partials[i], for each of the grid's i
//          partials: ACCUMULATOR [count, columns]; results: RESULT [columns]; count and columns int32; folds: the addresses
//          of MOST partials, then those of as many results
//            grid (ceil(columns / 32), up to MOST), block 1024
//   macros ACCUMULATOR, RESULT, MOST
// Bound by memory: the partials are read once.
#include "prelude.cuh"

using C = ACCUMULATOR;
using Result = RESULT;

struct Folds {
  const C* partials[MOST];
  Result* results[MOST];
};

extern "C" __global__ void __launch_bounds__(1024)
    norm_fold(const __grid_constant__ Folds folds, int count, int columns) {
  __shared__ C tile[32][33];
  const C* partial = folds.partials[blockIdx.y];
  Result* result = folds.results[blockIdx.y];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int firstColumn = blockIdx.x * 32;
  C sum = 0;
  if (firstColumn + lane < columns) {
#pragma unroll 8
    for (int row = warp; row < count; row += 32) sum += partial[static_cast<int64>(row) * columns + firstColumn + lane];
  }
  tile[warp][lane] = sum;
  __syncthreads();
  sum = warp_reduce(tile[lane][warp], Sum{});
  if (lane == 0 && firstColumn + warp < columns) result[firstColumn + warp] = convert<Result>(sum);
}
