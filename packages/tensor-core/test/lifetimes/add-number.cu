#include "prelude.cuh"

// In place, one element a thread.
extern "C" __global__ void add_number(float* x, float number, int64 size) {
  const int64 i = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < size) x[i] += number;
}
