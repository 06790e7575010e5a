// AdamW's arithmetic of one element (Loshchilov & Hutter 2019, algorithm 2).
//
// Square root and quotient are made of the GPU's approximations and a Newton step each, which leaves about half a unit in the
// last place, as the exact ones do: those branch for numbers that do not come up here, and no other element's work can be
// moved across a branch.
#ifndef ROOFLINE_OPTIM_ADAMW_CUH
#define ROOFLINE_OPTIM_ADAMW_CUH

namespace {

/** Explained in src/optimizers/adamw-update.ts. */
struct AdamWCoefficients {
  float decay, oneMinusBeta1, beta2, oneMinusBeta2, scaledEpsilon, scaledStepSize;
};

__device__ __forceinline__ float reciprocal_estimate(float x) {
#ifdef __CUDA_ARCH__
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
#else
  return 1 / x;
#endif
}

/** √x for x ≥ 0. */
__device__ __forceinline__ float square_root(float x) {
  const float inverse = rsqrtf(x);
  const float estimate = __fmul_rn(x, inverse);
  const float root = fmaf(fmaf(-estimate, estimate, x), __fmul_rn(0.5f, inverse), estimate);
  // Of 0 and of infinity, whose inverse roots are each other.
  return root == root ? root : x;
}

/** x / y for a y that is 0, or neither subnormal nor above 2^126. */
__device__ __forceinline__ float quotient_of(float x, float y) {
  const float inverse = reciprocal_estimate(y);
  const float estimate = __fmul_rn(x, inverse);
  const float rest = fmaf(-estimate, y, x);
  // Not a number where the quotient is none or infinite.
  return rest == rest ? fmaf(rest, inverse, estimate) : estimate;
}

// Which products are rounded is said here: left to the compiler, one kernel may round others than another.
__device__ __forceinline__ void adamw_element(float& parameter, float& first, float& second, float gradient,
                                              const AdamWCoefficients& c) {
  const float m = fmaf(c.oneMinusBeta1, gradient, __fmul_rn(1 - c.oneMinusBeta1, first));
  const float v = fmaf(__fmul_rn(c.oneMinusBeta2, gradient), gradient, __fmul_rn(c.beta2, second));
  const float change = quotient_of(m, square_root(v) + c.scaledEpsilon);
  parameter = fmaf(-c.scaledStepSize, change, __fmul_rn(parameter, c.decay));
  first = m;
  second = v;
}

}  // namespace

#endif
