// kernel  adamw(table, decay, oneMinusBeta1, beta2, oneMinusBeta2, scaledEpsilon, scaledStepSize, corrections, skip,
//               coefficients, factor)
//   lists: parameter, first moment, second moment, gradient; 28 bytes an element, 30 with COPY
// Loshchilov & Hutter 2019, algorithm 2. The coefficients are explained in src/optimizers/adamw-update.ts. Where
// `corrections` is not null, the last two of tensor t are corrections[2t] and corrections[2t + 1].
#include "adamw.cuh"
#include "update.cuh"

extern "C" __global__ void __launch_bounds__(kThreads) adamw(
    const __grid_constant__ TensorTable<4 + kCopies> table, float decay, float oneMinusBeta1, float beta2, float oneMinusBeta2,
    float scaledEpsilon, float scaledStepSize, const float* corrections, const float* skip, const float* coefficients,
    const float* factor) {
  if (isSkipped(skip)) return;
  if (coefficients != nullptr) {
    decay = coefficients[0];
    oneMinusBeta1 = coefficients[1];
    beta2 = coefficients[2];
    oneMinusBeta2 = coefficients[3];
    scaledEpsilon = coefficients[4];
    scaledStepSize = coefficients[5];
  }
  const Chunk<4> chunk = chunkOfBlock<4, kCopies>(table);
  if (corrections != nullptr) {
    scaledEpsilon = corrections[2 * chunk.tensor];
    scaledStepSize = corrections[2 * chunk.tensor + 1];
  }
  const AdamWCoefficients numbers{decay, oneMinusBeta1, beta2, oneMinusBeta2, scaledEpsilon, scaledStepSize};
  const float scale = factorAt(factor);
  updateChunk<4, 3>(chunk, [=](float (&values)[4]) {
    adamw_element(values[0], values[1], values[2], scaled(values[3], scale), numbers);
  });
}
