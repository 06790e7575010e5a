// The elements that a thread of split_half.cu turns into fp16 planes, and the range of a block's elements.
#ifndef ROOFLINE_SPLIT_ELEMENTS_CUH
#define ROOFLINE_SPLIT_ELEMENTS_CUH

#include "float16.cuh"
#include "split_codes.cuh"
#include "split_place.cuh"

namespace {

/** Magnitudes of a block's elements, as bits; those that are not zero, less 1, so that zero wraps around to the end. */
struct BlockRange {
  unsigned largest = 0u;  // not the bits of a finite float where there are Inf or NaN
  unsigned smallest = ~0u, secondSmallest = ~0u;
  int zeros = 0;  // how many; any number above 1 is equivalent to 2

  __device__ __forceinline__ void add(float x) {
    const unsigned bits = __float_as_uint(x) & 0x7fffffffu;
    largest = max(largest, bits);
    secondSmallest = min(secondSmallest, max(smallest, bits - 1u));
    smallest = min(smallest, bits - 1u);
    zeros += bits == 0u;
  }
  __device__ __forceinline__ void join_warp() {
    constexpr unsigned all = 0xffffffffu;
    largest = __reduce_max_sync(all, largest);
    const unsigned least = __reduce_min_sync(all, smallest);
    const bool isOnly = __popc(__ballot_sync(all, smallest == least)) == 1;
    secondSmallest = __reduce_min_sync(all, isOnly && smallest == least ? secondSmallest : smallest);
    smallest = least;
    zeros = __reduce_add_sync(all, static_cast<unsigned>(zeros));
  }
  __device__ __forceinline__ bool is_finite() const { return largest < 0x7f800000u; }
  /** Whether hi is a normal number for every element that is not zero. */
  __device__ __forceinline__ bool is_narrow() const {
    return largest == 0u || smallest + 1u >= least_kept(exponent_for(largest));
  }
  /** The codes of its ranges, where it is_narrow. No line's are larger. */
  __device__ __forceinline__ unsigned ranges() const {
    const unsigned least = smallest + 1u, next = secondSmallest == ~0u ? ~0u : secondSmallest + 1u;
    const unsigned second = zeros == 0 ? next : zeros == 1 ? least : 0u;
    return range_code(largest, zeros == 0 ? least : 0u) | range_code(largest, second) << kSecond;
  }
};

/** A block in shared memory. The pitch keeps rows aligned, and a warp's lines in different banks. */
constexpr int kSharedPitch = kBlock + 4;
using SharedBlock = float[kBlock][kSharedPitch];

/** A thread's elements. Those past the end of a row repeat its first; rows past the end are zero. */
struct Elements {
  float of[kPasses][kVector];

  __device__ __forceinline__ void load(const Place& place) {
    const SplitOperand& operand = place.operand;
    const float* source = operand.source + place.batch * operand.sourceBatchStride + place.column;
    const bool aligned = (reinterpret_cast<unsigned long long>(source) & 15u) == 0 && operand.sourcePitch % 4 == 0;
#pragma unroll
    for (int pass = 0; pass < kPasses; pass++) {
      const int row = place.row + pass * kRowsPerPass;
      const float* address = source + static_cast<long long>(row) * operand.sourcePitch;
      load_row(of[pass], address, row < operand.rows ? operand.columns - place.column : 0, aligned);
    }
  }

  __device__ __forceinline__ void load_row(float (&x)[kVector], const float* address, int count, bool aligned) {
    if (aligned && count >= kVector) {
      const float4 first = *reinterpret_cast<const float4*>(address);
      const float4 second = *reinterpret_cast<const float4*>(address + 4);
      x[0] = first.x, x[1] = first.y, x[2] = first.z, x[3] = first.w;
      x[4] = second.x, x[5] = second.y, x[6] = second.z, x[7] = second.w;
    } else {
      x[0] = count > 0 ? address[0] : 0.0f;
#pragma unroll
      for (int i = 1; i < kVector; i++) x[i] = i < count ? address[i] : x[0];
    }
  }

  __device__ __forceinline__ BlockRange range(const Place& place) const {
    BlockRange range;
#pragma unroll
    for (int pass = 0; pass < kPasses; pass++) {
      const int zeros = range.zeros;
#pragma unroll
      for (int i = 0; i < kVector; i++) range.add(of[pass][i]);
      if (!place.exists(pass)) range.zeros = zeros;
    }
    return range;
  }

  __device__ __forceinline__ void store(const Place& place, SharedBlock& block) const {
#pragma unroll
    for (int pass = 0; pass < kPasses; pass++) {
      float4* row = reinterpret_cast<float4*>(&block[place.row_in_block(pass)][place.column_in_block(0)]);
      row[0] = float4{of[pass][0], of[pass][1], of[pass][2], of[pass][3]};
      row[1] = float4{of[pass][4], of[pass][5], of[pass][6], of[pass][7]};
    }
  }

  /** Loads a thread's elements, each scaled by the power of two of its line. */
  __device__ __forceinline__ void load(const Place& place, const SharedBlock& block, const int (&exponents)[kBlock]) {
#pragma unroll
    for (int pass = 0; pass < kPasses; pass++) {
#pragma unroll
      for (int i = 0; i < kVector; i++) {
        const float element = block[place.row_in_block(pass)][place.column_in_block(i)];
        of[pass][i] = element * power_of_two(exponents[place.line(pass, i)]);
      }
    }
  }

  /** Writes the planes of the elements times `scale`. */
  __device__ __forceinline__ void split(const Place& place, float scale) const {
    const SplitOperand& operand = place.operand;
    const long long planeSize = static_cast<long long>(operand.rows) * operand.pitch;
    unsigned short* planes = operand.planes + 2 * place.batch * planeSize + place.column;
#pragma unroll
    for (int pass = 0; pass < kPasses; pass++) {
      if (!place.exists(pass)) continue;
      const auto scaled = [&](int i) { return of[pass][i] * scale; };
      uint4 high, low;
      split_pair(scaled(0), scaled(1), high.x, low.x);
      split_pair(scaled(2), scaled(3), high.y, low.y);
      split_pair(scaled(4), scaled(5), high.z, low.z);
      split_pair(scaled(6), scaled(7), high.w, low.w);
      unsigned short* target = planes + static_cast<long long>(place.row + pass * kRowsPerPass) * operand.pitch;
      *reinterpret_cast<uint4*>(target) = high;
      *reinterpret_cast<uint4*>(target + planeSize) = low;
    }
  }

  __device__ static __forceinline__ void split_pair(float first, float second, unsigned& high, unsigned& low) {
    high = pack_float16(first, second);
    const float highFirst = to_float(float16{static_cast<unsigned short>(high & 0xffffu)});
    const float highSecond = to_float(float16{static_cast<unsigned short>(high >> 16)});
    constexpr float shift = 2048.0f;
    low = pack_float16((first - highFirst) * shift, (second - highSecond) * shift);
  }
};

/** The range of all threads' elements. */
__device__ __forceinline__ BlockRange range_of_block(const Place& place, const Elements& elements) {
  __shared__ uint4 ofWarps[kWarps];
  BlockRange range = elements.range(place);
  range.join_warp();
  const int lane = threadIdx.x % 32;
  if (lane == 0) {
    const unsigned zeros = range.zeros;
    ofWarps[threadIdx.x / 32] = uint4{range.largest, range.smallest, range.secondSmallest, zeros};
  }
  __syncthreads();
  range = BlockRange{};
  if (lane < kWarps) {
    const uint4 part = ofWarps[lane];
    range.largest = part.x, range.smallest = part.y, range.secondSmallest = part.z, range.zeros = part.w;
  }
  range.join_warp();
  return range;
}

}  // namespace

#endif
