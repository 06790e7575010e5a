// The weights of a warpgroup's 64 queries in flash_hopper_forward.cu: scores, in registers as a product leaves them, become
// weights, by maxima that are taken when they must be (the .cu says why).
#ifndef ROOFLINE_FLASH_HOPPER_SOFTMAX_CUH
#define ROOFLINE_FLASH_HOPPER_SOFTMAX_CUH

#include "flash_hopper_forward.cuh"

namespace {

// A thread's part of a block's sum, below which neither a weight overflows ELEMENT nor the sums float32.
constexpr float kOutgrown = sizeof(ELEMENT) == 2 && PTX_NAME(ELEMENT)[0] == 'f' ? 32768.0f : 4294967296.0f;

/** This thread has parts of the rows row() and row() + 8: index 0 and 1 below. */
struct Softmax {
  const HopperForwardParams& p;
  const int thread, lane;
  float shift[2];   // what is subtracted from a row's scores: their maximum, or one that was
  float sum[2];     // this thread's part of the row's weights
  float factor[2];  // of what was summed before the maximum moved
  bool moved;

  __device__ __forceinline__ explicit Softmax(const HopperForwardParams& p)
      : p(p), thread(threadIdx.x % 128), lane(threadIdx.x % 32) {}

  __device__ __forceinline__ int row() const { return thread / 32 * 16 + lane / 4; }

  /** Scores of keys that a query does not see become -inf. */
  __device__ __forceinline__ void mask(float (&scores)[kScores], int firstRow, int block) {
    const int first = block * BLOCK_N + lane % 4 * 2;  // the key of scores[0]
    int last[2];                                       // the last visible key of each row, counted from there
#pragma unroll
    for (int r = 0; r < 2; r++) {
      const int causalLast = firstRow + row() + 8 * r + p.keys - p.queries;
      last[r] = (CAUSAL ? min(causalLast, p.keys - 1) : p.keys - 1) - first;
    }
#pragma unroll
    for (int i = 0; i < kScores; i++) {
      if (i / 4 * 8 + i % 2 > last[i / 2 % 2]) scores[i] = lowest<float>();
    }
  }

  // -inf - -inf is kept away from rows that have seen no key: their weights are 0.
  __device__ __forceinline__ float finite_shift(int r) const { return shift[r] == lowest<float>() ? 0.0f : shift[r]; }

  __device__ __forceinline__ float weight_of(float score, float shiftLog2) const {
    return fast_exp2(fmaf(score, p.scaleLog2, shiftLog2));
  }

  /** The largest scores of the rows join the maximum of those before. */
  template <bool kFirst>
  __device__ __forceinline__ void take_maximum(const float (&scores)[kScores]) {
    float largest[2] = {fmaxf(scores[0], scores[1]), fmaxf(scores[2], scores[3])};
#pragma unroll
    for (int i = 4; i < kScores; i += 2) {
      largest[i / 2 % 2] = fmaxf(largest[i / 2 % 2], fmaxf(scores[i], scores[i + 1]));
    }
    moved = false;
#pragma unroll
    for (int r = 0; r < 2; r++) {
      // Four threads share a row.
      largest[r] = fmaxf(largest[r], __shfl_xor_sync(0xffffffffu, largest[r], 1));
      largest[r] = fmaxf(largest[r], __shfl_xor_sync(0xffffffffu, largest[r], 2));
      if (kFirst) {
        shift[r] = largest[r];
        sum[r] = 0.0f;
      } else {
        const float before = shift[r];
        shift[r] = fmaxf(before, largest[r]);
        factor[r] = fast_exp2((before - finite_shift(r)) * p.scaleLog2);
        moved |= shift[r] != before;
        sum[r] *= factor[r];
      }
    }
  }

  /** Scores become weights in place; their sums join the rows' where those are not of rounded weights. */
  __device__ __forceinline__ void exponentiate(float (&scores)[kScores]) {
    const float shiftLog2[2] = {-finite_shift(0) * p.scaleLog2, -finite_shift(1) * p.scaleLog2};
#pragma unroll
    for (int i = 0; i < kScores; i++) {
      scores[i] = weight_of(scores[i], shiftLog2[i / 2 % 2]);
      if (!SUM_ROUNDED) sum[i / 2 % 2] += scores[i];
    }
  }

  /** Two weights of a row as ELEMENT; adds them to `total`. */
  __device__ __forceinline__ uint32 pack_weights(float first, float second, float& total) {
    const uint32 pair = pack_pair<ELEMENT>(first, second);
    const float2 rounded = SUM_ROUNDED ? unpack_pair<ELEMENT>(pair) : float2{first, second};
    total += rounded.x;
    total += rounded.y;
    return pair;
  }

  __device__ __forceinline__ void pack(const float (&scores)[kScores], uint32 (&weights)[kWeights]) {
    float ignored = 0.0f;
#pragma unroll
    for (int i = 0; i < kWeights; i++) {
      weights[i] = pack_weights(scores[2 * i], scores[2 * i + 1], SUM_ROUNDED ? sum[i % 2] : ignored);
    }
  }

  /** Weights by the maximum as it stands; false, and nothing else, where a row has outgrown it, or holds a NaN. */
  __device__ __forceinline__ bool try_shift(float (&scores)[kScores], uint32 (&weights)[kWeights]) {
    const float shiftLog2[2] = {-shift[0] * p.scaleLog2, -shift[1] * p.scaleLog2};
    float total[2] = {0.0f, 0.0f};
#pragma unroll
    for (int i = 0; i < kScores; i += 2) {
      scores[i] = weight_of(scores[i], shiftLog2[i / 2 % 2]);
      scores[i + 1] = weight_of(scores[i + 1], shiftLog2[i / 2 % 2]);
      weights[i / 2] = pack_weights(scores[i], scores[i + 1], total[i / 2 % 2]);
    }
    if (!__all_sync(0xffffffffu, total[0] < kOutgrown && total[1] < kOutgrown)) return false;
    sum[0] += total[0];
    sum[1] += total[1];
    return true;
  }

  __device__ __forceinline__ void rescale(float (&output)[kOutputs]) {
    if (!__any_sync(0xffffffffu, moved)) return;
#pragma unroll
    for (int i = 0; i < kOutputs; i++) output[i] *= factor[i / 2 % 2];
  }
};

}  // namespace

#endif
