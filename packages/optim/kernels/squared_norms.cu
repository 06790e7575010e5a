// kernel  squared_norms(table, partialSums)
//   list: gradient; 4 bytes an element
// One partial sum of squares a block, which finish_norm.cu adds up.
#include "multi_tensor.cuh"

static __device__ float sumOverBlock(float value) {
  __shared__ float warpSums[32];
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(~0u, value, distance);
  if (threadIdx.x % 32 == 0) warpSums[threadIdx.x / 32] = value;
  __syncthreads();
  value = threadIdx.x < blockDim.x / 32 ? warpSums[threadIdx.x] : 0;
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(~0u, value, distance);
  return value;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    squared_norms(const __grid_constant__ TensorTable<1> table, float* partialSums) {
  float sum = 0;
  updateChunk<1, 0>(chunkOfBlock<1>(table), [&](float (&values)[1]) { sum += values[0] * values[0]; });
  sum = sumOverBlock(sum);
  if (threadIdx.x == 0) partialSums[blockIdx.x] = sum;
}
