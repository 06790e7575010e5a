// The GPU's own instruction for powers of two, in PTX.
#ifndef ROOFLINE_EXP2_CUH
#define ROOFLINE_EXP2_CUH

/** 2^x to within 2 units in the last place; what is below 2^-126 is zero. */
__device__ __forceinline__ float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

#endif
