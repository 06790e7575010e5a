// Elements chosen along one dimension, and the sum of their gradients back.
//
//   gather            out[o][j][i] = x[o][index[o][j][i]][i]; NaN, -1 or true for an index outside
//   gather_backward   dx[o][index[o][j][i]][i] += dy[o][j][i], dx zeroed before
//
// x is [outer][length][inner], index and out are [outer][chosen][inner]. A thread of gather_backward owns one
// (o, i) and walks over j, so that equal indices are added in order: the result is the same every time.
// grid: as many threads as the kernel has elements or owners; block (256, 1, 1). ELEMENT: the elements'
// type; INDEX: int32 or int64.

#include "prelude.cuh"

using Compute = ComputeType<ELEMENT>::type;

// Converts 0.5: integers give 0, a bool gives 1.
constexpr bool kIsInteger = static_cast<Compute>(0.5f) == Compute(0) || static_cast<Compute>(0.5f) == Compute(1);

__device__ __forceinline__ ELEMENT outside() {
  return kIsInteger ? convert<ELEMENT>(-1) : convert<ELEMENT>(__int_as_float(0x7fc00000));
}

extern "C" __global__ void __launch_bounds__(256) gather(const ELEMENT* x, const INDEX* index, ELEMENT* out, int64 size,
                                                          int64 length, int64 chosen, int64 inner) {
  const int64 element = static_cast<int64>(blockIdx.x) * 256 + threadIdx.x;
  if (element >= size) return;
  const int64 i = element % inner;
  const int64 o = element / inner / chosen;
  const int64 at = index[element];
  const bool inside = at >= 0 && at < length;
  out[element] = inside ? x[(o * length + at) * inner + i] : outside();
}

extern "C" __global__ void __launch_bounds__(256)
    gather_backward(const ELEMENT* dy, const INDEX* index, ELEMENT* dx, int64 owners, int64 length, int64 chosen, int64 inner) {
  const int64 owner = static_cast<int64>(blockIdx.x) * 256 + threadIdx.x;
  if (owner >= owners) return;
  const int64 i = owner % inner;
  const int64 o = owner / inner;
  for (int64 j = 0; j < chosen; j++) {
    const int64 element = (o * chosen + j) * inner + i;
    const int64 at = index[element];
    if (at < 0 || at >= length) continue;
    ELEMENT& sum = dx[(o * length + at) * inner + i];
    sum = convert<ELEMENT>(convert<Compute>(sum) + convert<Compute>(dy[element]));
  }
}
