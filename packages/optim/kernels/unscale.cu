// kernel  unscale(table, foundInf, scale)
//   list: gradient; 8 bytes an element
// Divides by *scale; *foundInf becomes 1 if a result is infinite or NaN.
#include "multi_tensor.cuh"

extern "C" __global__ void __launch_bounds__(kThreads)
    unscale(const __grid_constant__ TensorTable<1> table, float* foundInf, const float* scale) {
  const float inverseScale = (float)(1.0 / *scale);
  bool finite = true;
  updateChunk<1, 1>(chunkOfBlock<1>(table), [&](float (&values)[1]) {
    values[0] *= inverseScale;
    finite &= fabsf(values[0]) <= 3.402823466e38f;
  });
  // All that write here write the same.
  if (!finite) *foundInf = 1;
}
