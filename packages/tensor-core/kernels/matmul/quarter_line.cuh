// A block that split_half.cu examines line by line: what each line loses by a scale.
#ifndef ROOFLINE_QUARTER_LINE_CUH
#define ROOFLINE_QUARTER_LINE_CUH

#include "split_codes.cuh"
#include "split_elements.cuh"

namespace {

constexpr unsigned kLittleLoss = 7;  // as much as a line with a scale of its own may lose

/** A quarter of a line: magnitudes, as bits. Four neighbouring lanes hold the quarters of one line. */
struct QuarterLine {
  static constexpr int kCount = kBlock / 4;
  unsigned of[kCount];  // 0 where there is no element
  unsigned largest = 0u, second = 0u, smallest = ~0u, secondSmallest = ~0u;  // 0 and ~0 where there are none

  /** Reads it, and finds the two largest and the two smallest elements of the whole line. */
  __device__ __forceinline__ QuarterLine(const Place& place, const SharedBlock& block) {
    const SplitOperand& operand = place.operand;
    const bool down = operand.linesAreColumns;
    const int line = threadIdx.x / 4, k = threadIdx.x % 4;
    const int row = down ? k : line, column = down ? line : k;
    // Elements along K, from the first on.
    const int end = down ? operand.rows - place.firstRow - row : operand.columns - place.firstColumn - column;
    const bool isInside = down ? place.firstColumn + column < operand.columns : place.firstRow + row < operand.rows;
    const float* element = &block[row][column];
    const int step = down ? 4 * kSharedPitch : 4;
#pragma unroll
    for (int i = 0; i < kCount; i++) {
      const bool exists = isInside && 4 * i < end;
      of[i] = exists ? __float_as_uint(element[i * step]) & 0x7fffffffu : 0u;
      add(of[i], 0u, exists ? of[i] : ~0u, ~0u);
    }
#pragma unroll
    for (int mask = 1; mask < 4; mask *= 2) {
      const auto other = [&](unsigned mine) { return __shfl_xor_sync(0xffffffffu, mine, mask); };
      add(other(largest), other(second), other(smallest), other(secondSmallest));
    }
  }

  __device__ __forceinline__ void add(unsigned otherLargest, unsigned otherSecond, unsigned otherSmallest,
                                      unsigned otherSecondSmallest) {
    second = max(min(largest, otherLargest), max(second, otherSecond));
    largest = max(largest, otherLargest);
    secondSmallest = min(max(smallest, otherSmallest), min(secondSmallest, otherSecondSmallest));
    smallest = min(smallest, otherSmallest);
  }

  /** How many of the whole line's elements are lost. */
  __device__ __forceinline__ int lost(int s) const {
    const unsigned least = max(least_kept(s), 1u);
    int count = 0;
#pragma unroll
    for (int i = 0; i < kCount; i++) count += of[i] - 1u < least - 1u;  // 0 wraps around
    count += __shfl_xor_sync(0xffffffffu, count, 1);
    return count + __shfl_xor_sync(0xffffffffu, count, 2);
  }
};

/** The summary of the block whose lines the threads hold. */
__device__ __forceinline__ unsigned summarize(const QuarterLine& line, int exponent) {
  constexpr int kValues = 6;
  __shared__ unsigned worst[kValues];
  const unsigned factor = kExponentBias - exponent;
  const int lost = line.lost(exponent);
  const unsigned values[kValues] = {255u - factor,
                                    factor,
                                    loss_code(lost, line.largest, exponent),
                                    loss_code(lost, line.second, exponent),
                                    range_code(line.largest, line.smallest),
                                    range_code(line.largest, line.secondSmallest)};
  if (threadIdx.x < kValues) worst[threadIdx.x] = 0u;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kValues; i++) {
    const unsigned ofWarp = __reduce_max_sync(0xffffffffu, values[i]);
    if (threadIdx.x % 32 == 0) atomicMax(&worst[i], ofWarp);
  }
  __syncthreads();
  const unsigned losses = worst[2] | worst[3] << kSecond, ranges = worst[4] | worst[5] << kSecond;
  const unsigned summary = 255u - worst[0] | worst[1] << 8 | losses << kLossShift | ranges << kRangeShift;
  __syncthreads();
  return summary;
}

/** Whether a block's losses are no more than those of lines with scales of their own may be. */
__device__ __forceinline__ bool loses_little(unsigned summary) {
  return (summary >> kLossShift & 15u) <= kLittleLoss || (summary >> (kLossShift + kSecond) & 15u) <= kLittleLoss;
}

}  // namespace

#endif
