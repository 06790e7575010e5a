// kernel  clip(table, norm, maxNorm)
//   list: gradient; 8 bytes an element, or none where the norm is within the limit
#include "multi_tensor.cuh"
#include "norm_limit.cuh"

extern "C" __global__ void __launch_bounds__(kThreads)
    clip(const __grid_constant__ TensorTable<1> table, const float* norm, float maxNorm) {
  const float scale = clipFactor(*norm, maxNorm);
  if (scale == 1) return;
  updateChunk<1, 1>(chunkOfBlock<1>(table), [=](float (&values)[1]) { values[0] *= scale; });
}
