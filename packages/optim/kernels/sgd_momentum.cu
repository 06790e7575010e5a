// kernel  sgd_momentum(table, learningRate, weightDecay, momentum, nesterov, skip, coefficients, factor)
//   lists: parameter, momentum buffer, gradient; 20 bytes an element, 22 with COPY
#include "update.cuh"

extern "C" __global__ void __launch_bounds__(kThreads)
    sgd_momentum(const __grid_constant__ TensorTable<3 + kCopies> table, float learningRate, float weightDecay, float momentum,
                 float nesterov, const float* skip, const float* coefficients, const float* factor) {
  if (isSkipped(skip)) return;
  if (coefficients != nullptr) {
    learningRate = coefficients[0];
    weightDecay = coefficients[1];
    momentum = coefficients[2];
    nesterov = coefficients[3];
  }
  const float scale = factorAt(factor);
  updateChunk<3, 2>(chunkOfBlock<3, kCopies>(table), [=](float (&values)[3]) {
    const float gradient = scaled(values[2], scale) + weightDecay * values[0];
    values[1] = momentum * values[1] + gradient;
    values[0] -= learningRate * (nesterov != 0 ? gradient + momentum * values[1] : values[1]);
  });
}
