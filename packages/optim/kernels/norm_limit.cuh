// The factor that scales gradients of a norm to within a limit.
#ifndef ROOFLINE_OPTIM_NORM_LIMIT_CUH
#define ROOFLINE_OPTIM_NORM_LIMIT_CUH

namespace {

// NaN where the norm is.
__device__ float clipFactor(float norm, float maxNorm) {
  const float scale = maxNorm / (norm + 1e-6f);
  return scale >= 1 ? 1 : scale;
}

}  // namespace

#endif
