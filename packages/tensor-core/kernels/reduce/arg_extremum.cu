// The index of the largest or smallest element along one dimension: the first of equal ones, and NaN before any number.
//
// kernels  arg_extremum_rows(x, candidates, index, rows, length, items, chunk, chunks)
//            x [rows, length]; index [rows, chunks] of the best among each chunk of a row's items. The items are the
//            row's elements, or those that candidates [rows, items] names, where it is not null.
//            grid ceil(rows · chunks / (256 / WIDTH)); WIDTH threads share a chunk: 32 or 256
//          arg_extremum_columns(x, index, columns, length, inner)
//            x [outer, length, inner], index [outer, inner], columns = outer · inner
//            grid ceil(columns / 256); a thread walks along a column
//          x: ELEMENT; index and candidates int64; counts int64; block 256
//   macros ELEMENT; LARGEST: 1 or 0; WIDTH
// Bound by memory: each element is read once.
#include "prelude.cuh"

using Element = ELEMENT;
using C = compute_t<Element>;

/** An element and its index; no element yet where the index is negative. */
struct Candidate {
  C value;
  int64 index;
};

__device__ __forceinline__ bool is_better(Candidate a, Candidate b) {
  if (a.index < 0 || b.index < 0) return b.index < 0 && a.index >= 0;
  const bool aIsNaN = a.value != a.value, bIsNaN = b.value != b.value;
  if (aIsNaN != bIsNaN) return aIsNaN;
  if (aIsNaN || a.value == b.value) return a.index < b.index;
  return LARGEST ? a.value > b.value : a.value < b.value;
}

/** The best among the lanes of a warp; every lane gets it. */
__device__ __forceinline__ Candidate warp_best(Candidate best) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    const Candidate other = {__shfl_xor_sync(kFullWarp, best.value, distance),
                             __shfl_xor_sync(kFullWarp, best.index, distance)};
    if (is_better(other, best)) best = other;
  }
  return best;
}

extern "C" __global__ void __launch_bounds__(256)
    arg_extremum_rows(const Element* x, const int64* candidates, int64* index, int64 rows, int64 length, int64 items,
                      int64 chunk, int64 chunks) {
  const int lane = threadIdx.x % WIDTH;
  const int64 group = static_cast<int64>(blockIdx.x) * (256 / WIDTH) + threadIdx.x / WIDTH;
  const int64 row = group / chunks;
  if (row >= rows) return;
  const int64 begin = (group - row * chunks) * chunk;
  const int64 end = begin + chunk < items ? begin + chunk : items;
  Candidate best = {C(0), -1};
#pragma unroll 4
  for (int64 i = begin + lane; i < end; i += WIDTH) {
    const int64 at = candidates ? candidates[row * items + i] : i;
    const Candidate next = {to_compute(x[row * length + at]), at};
    if (is_better(next, best)) best = next;
  }
  best = warp_best(best);
  if constexpr (WIDTH > 32) {
    __shared__ C values[8];
    __shared__ int64 indices[8];
    if (lane % 32 == 0) {
      values[lane / 32] = best.value;
      indices[lane / 32] = best.index;
    }
    __syncthreads();
    for (int warp = 0; warp < 8; warp++) {
      const Candidate other = {values[warp], indices[warp]};
      if (is_better(other, best)) best = other;
    }
  }
  if (lane == 0) index[group] = best.index;
}

extern "C" __global__ void __launch_bounds__(256)
    arg_extremum_columns(const Element* x, int64* index, int64 columns, int64 length, int64 inner) {
  const int64 column = static_cast<int64>(blockIdx.x) * 256 + threadIdx.x;
  if (column >= columns) return;
  const Element* source = x + column / inner * length * inner + column % inner;
  Candidate best = {C(0), -1};
#pragma unroll 4
  for (int64 i = 0; i < length; i++) {
    const Candidate next = {to_compute(source[i * inner]), i};
    if (is_better(next, best)) best = next;
  }
  index[column] = best.index;
}
