// What flash_mma_forward.cu and flash_mma_join.cu agree on: how scores become weights, and what blocks that share a tile of
// queries, each with a part of the keys, leave of it.
//
//   partial   float [splits][batch · heads · queries][HEAD_DIM], Σ weights · v of a part, not divided by Σ weights; and
//             after them [splits][batch · heads · queries][2], the largest score, as Exponent has it, and Σ weights
#ifndef ROOFLINE_FLASH_MMA_FORWARD_CUH
#define ROOFLINE_FLASH_MMA_FORWARD_CUH

#include "mma_products.cuh"

namespace {

constexpr float kLn2 = 0.69314718055994530942f;

/** How scores become weights. */
struct Exponent {
  float scale;
  bool isNegative;

  __device__ __forceinline__ explicit Exponent(double scaleOfScores)
      : scale(kIsFloat ? static_cast<float>(scaleOfScores) : fabsf(static_cast<float>(scaleOfScores * kLog2E))),
        isNegative(!kIsFloat && scaleOfScores < 0) {}

  /** What a row's maximum is of, of a score. */
  __device__ __forceinline__ float prepared(float score) const {
    return kIsFloat ? __fmul_rn(score, scale) : isNegative ? -score : score;
  }
  /** What is subtracted, given a maximum. */
  __device__ __forceinline__ float shift(float maximum) const {
    const float finite = finite_shift(maximum);
    return kIsFloat ? finite : finite * scale;
  }
  __device__ __forceinline__ float weight(float score, float shift) const {
    return kIsFloat ? exponential(score - shift) : fast_exp2(fmaf(score, scale, -shift));
  }
  /** In natural units. */
  __device__ __forceinline__ float log_sum_exp(float maximum, float sum) const {
    return (kIsFloat ? maximum : maximum * scale * kLn2) + log(sum);
  }
};

/** Writes the log-sum-exp of a row and, where they are kept, its maximum and sum. */
__device__ __forceinline__ void write_statistics(const FlashParams& p, int64 at, const Exponent& exponent, float largest,
                                                 float sum) {
  p.lse[at] = exponent.log_sum_exp(largest, sum);
  if (p.statistics == nullptr) return;
  p.statistics[2 * at] = finite_shift(largest);
  p.statistics[2 * at + 1] = sum == 0 ? 1.0f : sum;
}

/** Where one split's results of a row lie, by the row's place in lse. */
struct PartialRows {
  float* partial;
  int64 rows;
  int splits, split;

  __device__ __forceinline__ PartialRows(const FlashParams& p, float* partial, int splits, int split)
      : partial(partial), rows(row_offset(p, p.batch, 0)), splits(splits), split(split) {}
  __device__ __forceinline__ float* sums(int64 at) const { return partial + (split * rows + at) * HEAD_DIM; }
  __device__ __forceinline__ float* statistics(int64 at) const {
    return partial + splits * rows * HEAD_DIM + (split * rows + at) * 2;
  }
};

}  // namespace

#endif
