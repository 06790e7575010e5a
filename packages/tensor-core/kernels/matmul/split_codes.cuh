// The scale that split_half.cu gives to magnitudes, and its codes for their losses and ranges; see split_half.cuh.
#ifndef ROOFLINE_SPLIT_CODES_CUH
#define ROOFLINE_SPLIT_CODES_CUH

#include "split_half.cuh"

namespace {

constexpr int kLargestExponent = 114;

/** s with x·2^s in [2^14, 2^15), held to [-113, 114], where no digit of a float is lost; 0 for 0. */
__device__ __forceinline__ int exponent_for(unsigned magnitude) {
  if (magnitude == 0u) return 0;
  return 14 - max(static_cast<int>(magnitude >> 23) - kExponentBias, 14 - kLargestExponent);
}

/** The least magnitude, as bits, for which hi is normal after scaling by 2^s: smaller elements, except 0, are lost. */
__device__ __forceinline__ unsigned least_kept(int s) {
  const int exponent = -14 - s;
  if (s == kLargestExponent) return 0u;
  return exponent >= -126 ? exponent + kExponentBias << 23 : 1u << exponent + 149;
}

__device__ __forceinline__ int floor_log2(unsigned magnitude) {
  const int biased = magnitude >> 23;
  return biased > 0 ? biased - kExponentBias : -118 - __clz(magnitude);
}

__device__ __forceinline__ unsigned held(int code, int least) {
  return min(max(code, least), static_cast<int>(kBeyond));
}

/** The loss of a line with `lost` lost elements, relative to the element of magnitude `element`. */
__device__ __forceinline__ unsigned loss_code(int lost, unsigned element, int s) {
  if (lost == 0) return 0u;
  if (element == 0u) return kBeyond;
  const int doublings = 32 - __clz(lost - 1);  // ceil(log2(lost))
  return held(doublings - 35 - s - floor_log2(element) + kLossOffset, 1);
}

/** The range of a line from `largest` down to `element`, ~0 if there is none. */
__device__ __forceinline__ unsigned range_code(unsigned largest, unsigned element) {
  if (largest == 0u || element == ~0u) return 0u;
  if (element == 0u) return kBeyond;
  return held(floor_log2(largest) + 1 - floor_log2(element) - kRangeOffset, 0);
}

}  // namespace

#endif
