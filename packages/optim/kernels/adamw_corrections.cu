// kernel  adamw_corrections(table, corrections, skip, learningRate, beta1, beta2, epsilon)
//   list: number of steps (float64, one element)
// Counts a step of each tensor, unless it is skipped, and computes those of adamw's coefficients that depend on that
// count.
#include "update.cuh"

extern "C" __global__ void __launch_bounds__(kThreads)
    adamw_corrections(const __grid_constant__ TensorTable<1> table, float* corrections, const float* skip,
                      double learningRate, double beta1, double beta2, double epsilon) {
  if (threadIdx.x != 0 || isSkipped(skip)) return;
  const Chunk<1> chunk = chunkOfBlock<1>(table);
  double* steps = (double*)chunk.data[0];
  const double step = *steps + 1;
  *steps = step;
  const double root = sqrt(1 - pow(beta2, step));
  corrections[2 * chunk.tensor] = (float)(root * epsilon);
  corrections[2 * chunk.tensor + 1] = (float)(root * (learningRate / (1 - pow(beta1, step))));
}
