// kernel  sgd(table, learningRate, weightDecay, skip, coefficients, factor)
//   lists: parameter, gradient; 12 bytes an element, 14 with COPY
#include "update.cuh"

extern "C" __global__ void __launch_bounds__(kThreads)
    sgd(const __grid_constant__ TensorTable<2 + kCopies> table, float learningRate, float weightDecay, const float* skip,
        const float* coefficients, const float* factor) {
  if (isSkipped(skip)) return;
  if (coefficients != nullptr) {
    learningRate = coefficients[0];
    weightDecay = coefficients[1];
  }
  const float scale = factorAt(factor);
  updateChunk<2, 1>(chunkOfBlock<2, kCopies>(table), [=](float (&values)[2]) {
    values[0] -= learningRate * (scaled(values[1], scale) + weightDecay * values[0]);
  });
}
