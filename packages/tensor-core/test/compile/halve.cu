#include "prelude.cuh"

// In place, one element a thread; `copy` may be null.
extern "C" __global__ void halve(float* x, bfloat16* copy, int64 size) {
  const int64 i = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= size) return;
  x[i] /= 2;
  if (copy != nullptr) copy[i] = convert<bfloat16>(x[i]);
}
