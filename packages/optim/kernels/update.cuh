// What kernels that update parameters have in common, besides the table of their tensors. `skip` may be null; where it
// is not and *skip is not 0, an update changes nothing. `coefficients` may be null; where it is not, it has the numbers
// that precede the pointers, in their order. `factor` may be null; where it is not, gradients are multiplied by it
// first.
#ifndef ROOFLINE_OPTIM_UPDATE_CUH
#define ROOFLINE_OPTIM_UPDATE_CUH
#include "multi_tensor.cuh"

namespace {

__device__ float factorAt(const float* factor) { return factor != nullptr ? *factor : 1; }

// Rounded, as it would be in memory: nothing is added to it in the same operation.
__device__ float scaled(float gradient, float factor) { return __fmul_rn(gradient, factor); }

__device__ bool isSkipped(const float* skip) { return skip != nullptr && *skip != 0; }

}  // namespace

#endif
