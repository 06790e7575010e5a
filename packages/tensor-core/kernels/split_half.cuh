// What split_half.cu and matmul_split_half.cu agree on: the layout of a float32 operand as fp16 planes with scales, and
// which of three ways a pair of 64×64 blocks is multiplied.
//
// A "line" is the 64 elements that one row of op(A), or one column of op(B), has in one K block. Every line has a
// power of two 2^s, and every element x of it two fp16 parts:
//     hi = fp16(x·2^s),   lo = fp16((x·2^s - hi)·2^11),   x ≈ 2^-s·(hi + 2^-11·lo)
//
// What the parts lose. With u = 2^-24, float32's unit roundoff:
//   - Where hi is a normal number (|x|·2^s ≥ 2^-14), |x·2^s - hi| ≤ 2^-11·|x|·2^s, and rounding that to lo loses no
//     more than 2^-22·|x|, 4 u. No |x|·2^s exceeds 2^15. An s of 114, the largest, loses nothing below either:
//     float32 ends at 2^-149, and lo's last digit is 2^-35.
//   - A smaller element loses up to 2^-36·2^-s. Such elements are "lost", though those of a line whose largest lies
//     in [2^14, 2^15) still lose no more than 2^-50 of that.
//   - The product leaves lo·lo out: 2^-22·|a·b|, or, of a lost a, 2^-36·2^-s·|b|.
// A product of two lines without lost elements is therefore off by no more than 3·2^-22·Σ|a·b|, 12 u. If a has n lost
// ones, that adds n·2^-35·2^-s·max|b|, which is to be no more than 4 u of Σ|a·b|, or of a part of it:
//   - of |a_i·b_i| where |a_i| is a's largest, b_i being b's smallest at worst; or
//   - of one of two such products, the lesser of a's two largest by the second smallest of b: of two elements of b,
//     one is no less than that. A single tiny element, as random numbers have them, leaves this as it is.
// Both sides together make 12 u 20 u. Where neither holds (zeros are small, too), and where there are Inf and NaN, the
// blocks are multiplied exactly.
#ifndef ROOFLINE_SPLIT_HALF_CUH
#define ROOFLINE_SPLIT_HALF_CUH

#include "tensor_map.cuh"

namespace {

constexpr int kBlock = 64;        // the K block, and the lines that share a summary
constexpr int kLoShift = -11;     // lo planes hold the residual times 2^11
constexpr int kExponentBias = 127;

// What the split writes for a 64×64 block besides its planes: a byte for each line, the biased exponent of 2^-s (2^-s
// itself once it is shifted by 23); and a summary of them:
//   bits 0 to 7 and 8 to 15   the lowest and the highest of those bytes
//   bits 16 to 19, 20 to 23   the worst loss of a line, relative to its largest and its second largest element
//   bits 24 to 27, 28 to 31   the worst range of a line, down to its smallest and its second smallest element
// A loss l means that the n·2^-35·2^-s above is at most 2^(l - 50) of the element, l = 0 that none is lost. A range r
// means that the largest is at most 2^(16 + r) times the element. 15 stands for anything beyond 14.
constexpr unsigned kBeyond = 15u;
constexpr int kLossShift = 16, kRangeShift = 24, kSecond = 4;
constexpr int kRangeOffset = 16;
constexpr int kLossOffset = 50;

/** The summary of a block with Inf or NaN, whose planes hold only zeros: nothing bounds its losses. */
constexpr unsigned kNotFinite = kExponentBias | kExponentBias << 8 | 255u << kLossShift | 255u << kRangeShift;

__device__ __forceinline__ int lowest_factor(unsigned summary) { return summary & 255u; }
__device__ __forceinline__ int highest_factor(unsigned summary) { return summary >> 8 & 255u; }

__device__ __forceinline__ float power_of_two(int exponent) {
  return __int_as_float((exponent + kExponentBias) << 23);
}

/** Whether what the lines of one block have lost is no more than 4 u of their products with those of the other. */
__device__ __forceinline__ bool is_bounded(unsigned block, unsigned other) {
  constexpr unsigned most = kLossOffset - kRangeOffset - 22;  // 2^-22 is 4 u
  const unsigned byLargest = block >> kLossShift & 15u, bySecond = block >> (kLossShift + kSecond) & 15u;
  const unsigned toSmallest = other >> kRangeShift & 15u, toSecond = other >> (kRangeShift + kSecond) & 15u;
  return byLargest == 0 || byLargest + toSmallest <= most || bySecond + toSecond <= most;
}

/** How the sums of A's block and B's block join the total. */
enum class Way {
  kByRow,   // each row of A has a factor, all columns of B one: a sum is multiplied by one float
  kByLine,  // each column of B has a factor, too
  kExact,   // no factor serves: the float32 operands themselves are multiplied
};

// The limit of the exponents of sums' factors; see way_of.
constexpr int kExponentLimit = 90;

/**
 * The sums are multiples of 2^-48 below 2^37, so that an exponent up to 90 overflows nowhere (nor can Inf meet
 * -Inf). One that is a product of two, applied in turn, is exact in the first step if A's lies within ±90. Beyond,
 * where products come near float32's own end, blocks are multiplied exactly.
 */
__device__ __forceinline__ Way way_of(unsigned a, unsigned b) {
  constexpr int lowest = -149 - kLoShift;  // of it and of 2^-11 of it, as floats, if denormal ones
  const int least = lowest_factor(a) + lowest_factor(b) - 2 * kExponentBias;
  const int most = highest_factor(a) + highest_factor(b) - 2 * kExponentBias;
  if (!is_bounded(a, b) || !is_bounded(b, a) || most > kExponentLimit) return Way::kExact;
  if (least >= lowest && lowest_factor(b) == highest_factor(b)) return Way::kByRow;
  const bool exactFirst = lowest_factor(a) >= kExponentBias - kExponentLimit &&
                          highest_factor(a) <= kExponentBias + kExponentLimit;
  return exactFirst ? Way::kByLine : Way::kExact;
}

/** The parameter of matmul_split_half.cu, which describes each. */
struct alignas(64) MatmulParams {
  TensorMap a, b;
  const unsigned char *factorsA, *factorsB;
  float *c, *partials;
  int* ready;
  long long batchStrideC;
  int m, n, k, batch;
  int pitchC, batchStepA, batchStepB;
  float alpha;
  int streamTiles, groupM;
  const float *sourceA, *sourceB;
  long long batchStrideA, batchStrideB;
  int pitchA, pitchB;
  const unsigned *summariesA, *summariesB;
};
static_assert(sizeof(MatmulParams) == 448, "the host packs 448 bytes");

}  // namespace

#endif
