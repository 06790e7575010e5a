// The 16-bit floating-point storage types and their conversions, by PTX and bit operations: no toolkit header.
// prelude.cuh includes this file; kernels include prelude.cuh.
#ifndef ROOFLINE_FLOAT16_CUH
#define ROOFLINE_FLOAT16_CUH

/** IEEE binary16, as stored in memory. */
struct float16 {
  unsigned short bits;
};

/** The upper half of a float32, as stored in memory. */
struct bfloat16 {
  unsigned short bits;
};

__device__ __forceinline__ float to_float(float16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}

__device__ __forceinline__ float to_float(bfloat16 x) { return __uint_as_float(static_cast<unsigned>(x.bits) << 16); }

/** Rounds to nearest even, as all conversions here do. */
__device__ __forceinline__ float16 to_float16(float x) {
  float16 y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}

__device__ __forceinline__ bfloat16 to_bfloat16(float x) {
  bfloat16 y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}

/** Two values in one 32-bit word, the first in the low half. */
__device__ __forceinline__ unsigned pack_float16(float first, float second) {
  unsigned packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(second), "f"(first));
  return packed;
}

__device__ __forceinline__ unsigned pack_bfloat16(float first, float second) {
  unsigned packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(second), "f"(first));
  return packed;
}

/** The same for either type. */
template <typename T>
__device__ __forceinline__ unsigned pack_pair(float first, float second);
template <>
__device__ __forceinline__ unsigned pack_pair<float16>(float first, float second) {
  return pack_float16(first, second);
}
template <>
__device__ __forceinline__ unsigned pack_pair<bfloat16>(float first, float second) {
  return pack_bfloat16(first, second);
}

#endif
