// kernel  clip_factor(norm, maxNorm, factor), one thread
// The factor that clip.cu scales by, 1 where the norm is within the limit.
#include "norm_limit.cuh"

extern "C" __global__ void clip_factor(const float* norm, float maxNorm, float* factor) {
  *factor = clipFactor(*norm, maxNorm);
}
