// kernel  finish_norm(partialSums, count, norm)
//   grid (1, 1, 1), block (1024, 1, 1)
// The square root of the sum of all partial sums. In float64: there may be millions.

extern "C" __global__ void __launch_bounds__(1024) finish_norm(const float* partialSums, int count, float* norm) {
  __shared__ double sums[1024];
  double sum = 0;
  for (int i = threadIdx.x; i < count; i += 1024) sum += partialSums[i];
  sums[threadIdx.x] = sum;
  for (int half = 512; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) *norm = (float)sqrt(sums[0]);
}
