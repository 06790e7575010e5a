// What split_half.cu and matmul_split_half.cu agree on: how a float32 operand lies as fp16 planes with scales, and
// which of three ways a pair of 64×64 blocks is multiplied.
//
// A "line" is the 64 elements that one row of op(A), or one column of op(B), has in one K block. Every line has a
// power of two 2^s, and every element x of it two fp16 parts:
//     hi = fp16(x·2^s),   lo = fp16((x·2^s - hi)·2^11),   x ≈ 2^-s·(hi + 2^-11·lo)
//
// What the parts lose. With u = 2^-24, float32's unit roundoff:
//   - Where hi is a normal number (|x|·2^s ≥ 2^-14), |x·2^s - hi| ≤ 2^-11·|x|·2^s, and rounding that to lo loses no
//     more than 2^-22·|x|, 4 u. 2^s takes the line's largest magnitude to [2^14, 2^15), so this holds for all x
//     down to 2^-28 of the largest. An s held at 126 loses nothing below either: float32 ends at 2^-149.
//   - Smaller elements lose up to 2^-36·2^-s, 2^-50 of the line's largest. A line that has some is "wide".
//   - The product leaves lo·lo out: 2^-22·|a·b|, or, of a wide line, 2^-50·(its largest)·|b|.
// A product of two lines, neither wide, is therefore off by no more than 3·2^-22·Σ|a·b|, 12 u. A wide line a may
// meet a line b whose smallest magnitude is at least 2^-22 of its largest, b then counting as not "sparse": with i
// where |a| is largest, 64·2·2^-50·max|a|·max|b| ≤ 2^-21·|a_i·b_i|, so 12 u becomes 20 u. A wide line that meets a
// sparse one (zeros make it sparse) has no such bound, and nor have Inf and NaN: those blocks are multiplied exactly.
#ifndef ROOFLINE_SPLIT_HALF_CUH
#define ROOFLINE_SPLIT_HALF_CUH

namespace {

constexpr int kBlock = 64;        // the K block, and the lines that share a BlockScales
constexpr int kLoShift = -11;     // lo planes hold the residual times 2^11
constexpr int kExponentBias = 127;

// Of nearly every 64×64 block of ordinary data, all elements are finite and one s loses no more of any than the above:
// they are zero, or lie within 2^28 of one another. Such a "plain" block has one s, and the product needs to read no
// more of it than that: an int, -s, where others have kNotPlain. What there is to tell beyond stands in BlockScales.
constexpr int kNotPlain = 1 << 20;

/** What the split leaves of each 64×64 block of a stored matrix beside its planes and its -s; 68 bytes. */
struct BlockScales {
  /** Bits 0 to 7 and 8 to 15: the lowest and the highest of `factors`; then the marks below, of any line. */
  unsigned summary;
  /**
   * The biased exponent of 2^-s for each line: 2^-s itself once it is shifted by 23. Lines of zeros take any. They
   * are written only where the summary tells them apart.
   */
  unsigned char factors[kBlock];
};
static_assert(sizeof(BlockScales) == 68, "the host allocates 68 bytes a block");

constexpr unsigned kWide = 1u << 16;       // nonzero elements below 2^-28 of their line's largest
constexpr unsigned kSparse = 1u << 17;     // zeros, or elements below 2^-22 of their line's largest
constexpr unsigned kNotFinite = 1u << 18;  // Inf or NaN; the planes hold nothing but zeros

__device__ __forceinline__ bool has_one_factor(unsigned summary) { return (summary & 255u) == (summary >> 8 & 255u); }

__device__ __forceinline__ float power_of_two(int exponent) {
  return __int_as_float((exponent + kExponentBias) << 23);
}

// A block's promotion: the exponent of the factor that all its sums share, or one of these.
constexpr int kByLine = 1 << 20;      // each row of A and each column of B has a factor of its own
constexpr int kExactly = -(1 << 20);  // no factor serves: the float32 operands themselves are multiplied

// Of the factors of sums; see promotion_of.
constexpr int kExponentLimit = 90;

/**
 * How the sums of A's block and B's block are promoted. The sums are multiples of 2^-48 below 2^37, so a common
 * exponent up to 90 overflows nowhere (nor can Inf meet -Inf), and one that is a product of two, applied in turn,
 * is exact in the first step if A's lies within ±90. Beyond, where products come near float32's own end, blocks
 * are multiplied exactly.
 */
__device__ __forceinline__ int promotion_of(unsigned a, unsigned b) {
  const int lowestA = a & 255, highestA = a >> 8 & 255, highestB = b >> 8 & 255;
  const int exponent = highestA + highestB - 2 * kExponentBias;
  const bool unbounded = (((a << 1) & b) | ((b << 1) & a)) & kSparse;
  if (((a | b) & kNotFinite) || unbounded || exponent > kExponentLimit) return kExactly;
  if (has_one_factor(a) && has_one_factor(b)) return exponent;
  return lowestA < kExponentBias - kExponentLimit || highestA > kExponentBias + kExponentLimit ? kExactly : kByLine;
}

/**
 * Whether `sum`, of the -s of two blocks, is the exponent that promotion_of would give, and the factor and 2^-11 of
 * it are normal floats. What is neither is rare enough to be looked up in the summaries.
 */
__device__ __forceinline__ bool is_plain_sum(int sum) {
  constexpr int lowest = -126 - kLoShift;
  return static_cast<unsigned>(sum - lowest) <= static_cast<unsigned>(kExponentLimit - lowest);
}

/** A CUtensorMap. */
struct alignas(64) TensorMap {
  unsigned long long opaque[16];
};

/** The parameter of matmul_split_half.cu, which describes each. */
struct alignas(64) MatmulParams {
  TensorMap a, b;
  const BlockScales *scalesA, *scalesB;
  float *c, *partials;
  int* ready;
  long long batchStrideC;
  int m, n, k, batch;
  int pitchC, batchStepA, batchStepB, accumulate;
  float alpha;
  int streamTiles, groupM;
  const float *sourceA, *sourceB;
  long long batchStrideA, batchStrideB;
  int pitchA, pitchB;
  const int *exponentsA, *exponentsB;
};
static_assert(sizeof(MatmulParams) == 448, "the host packs 448 bytes");

}  // namespace

#endif
