// How sums of one K block join the total in matmul_split_half.cu: the scales of its rows and columns, and which of the
// ways of split_half.cuh they take.
#ifndef ROOFLINE_PROMOTION_CUH
#define ROOFLINE_PROMOTION_CUH

#include "consumer.cuh"
#include "stream_k.cuh"
#include "tile_shape.cuh"

namespace {

/** The scales that the promotion of one K block needs, as read. */
struct RawFactors {
  int a[2];                  // biased exponents of a thread's two rows
  unsigned b[kColumnBlocks]; // summaries
};

/**
 * 2^-(sa+sb) for one K block, a thread's two rows, and each 64 columns of the tile: exponents, to save registers, and
 * 32 higher, so that those of denormal floats become normal ones, too.
 */
struct Factors {
  static constexpr int kRaised = 32;
  unsigned biased;  // a byte for each, the rows' of one column block side by side; 0 is a factor of 0

  __device__ __forceinline__ explicit Factors(const RawFactors& raw) : biased(0u) {
#pragma unroll
    for (int i = 0; i < kColumnBlocks * 2; i++) {
      const unsigned exponent = raw.a[i % 2] + highest_factor(raw.b[i / 2]) - kExponentBias + kRaised;
      biased |= (exponent & 255u) << 8 * i;
    }
  }
  __device__ __forceinline__ void clear(int columnBlock) { biased &= ~(0xffffu << 16 * columnBlock); }
  /** 2^shift of it. */
  template <int shift>
  __device__ __forceinline__ float at(int columnBlock, int row) const {
    const float raised = __uint_as_float((biased >> 8 * (2 * columnBlock + row) & 255u) << 23);
    return raised * power_of_two(shift - kRaised);
  }
};

/** The ways of the blocks that meet in one K block, for each 64 columns of the tile. */
struct Ways {
  Way of[kColumnBlocks];

  __device__ __forceinline__ bool are_all(Way way) const { return of[0] == way && of[kColumnBlocks - 1] == way; }
  __device__ __forceinline__ bool have(Way way) const { return of[0] == way || of[kColumnBlocks - 1] == way; }
};

/** Reads the scales along K of one warpgroup's rows and the tile's columns. */
struct ScaleReader {
  const MatmulParams& p;
  int a, b[kColumnBlocks];  // indices of the blocks at k = 0
  int strideA, strideB;
  int row;

  __device__ __forceinline__ ScaleReader(const MatmulParams& p, const Tile& tile, const Consumer& self)
      : p(p), row(self.row()) {
    const int blocksM = ceil_div(p.m, 64), blocksN = ceil_div(p.n, 64), blocksK = ceil_div(p.k, kBlock);
    strideA = TRANS_A ? blocksM : 1;
    strideB = TRANS_B ? 1 : blocksN;
    const int blockM = min(tile.row / 64 + self.warpgroup, blocksM - 1);
    a = tile.batch * p.batchStepA * blocksM * blocksK + blockM * (TRANS_A ? 1 : blocksK);
#pragma unroll
    for (int i = 0; i < kColumnBlocks; i++) {
      const int blockN = min(tile.column / 64 + i, blocksN - 1);
      b[i] = tile.batch * p.batchStepB * blocksN * blocksK + blockN * (TRANS_B ? blocksK : 1);
    }
  }

  __device__ __forceinline__ unsigned summary_a(int blockK) const { return __ldg(p.summariesA + a + blockK * strideA); }
  __device__ __forceinline__ unsigned summary_b(int columnBlock, int blockK) const {
    return __ldg(p.summariesB + b[columnBlock] + blockK * strideB);
  }
  __device__ __forceinline__ const unsigned char* factors_a(int blockK) const {
    return p.factorsA + ((a + blockK * strideA) * kBlock + row);
  }
  __device__ __forceinline__ const unsigned char* factors_b(int columnBlock, int blockK) const {
    return p.factorsB + (b[columnBlock] + blockK * strideB) * kBlock;
  }
  __device__ __forceinline__ RawFactors at(int blockK) const {
    const unsigned char* rows = factors_a(blockK);
    RawFactors raw{{__ldg(rows), __ldg(rows + 8)}, {}};
#pragma unroll
    for (int i = 0; i < kColumnBlocks; i++) raw.b[i] = summary_b(i, blockK);
    return raw;
  }
  __device__ __forceinline__ Ways ways_at(int blockK) const {
    const unsigned summary = summary_a(blockK);
    Ways ways;
#pragma unroll
    for (int i = 0; i < kColumnBlocks; i++) ways.of[i] = way_of(summary, summary_b(i, blockK));
    return ways;
  }
  /** Whether the whole segment is promoted by row; all lanes of the warp must call it. */
  __device__ __forceinline__ bool all_by_row(const Segment& segment) const {
    bool all = true;
#pragma unroll 1
    for (int block = segment.kBegin + threadIdx.x % 32; block < segment.kEnd; block += 32) {
      all &= ways_at(block).are_all(Way::kByRow);
    }
    return __all_sync(0xffffffffu, all);
  }
};

/** total += fresh · 2^(shift - sa - sb). */
template <int shift>
__device__ __forceinline__ void promote_by_row(float (&total)[kAccumulators], const float (&fresh)[kAccumulators],
                                               const Factors& factors) {
  float shifted[kColumnBlocks][2];
#pragma unroll
  for (int i = 0; i < kColumnBlocks * 2; i++) {
    shifted[i / 2][i % 2] = factors.at<shift>(i / 2, i % 2);
    asm volatile("" : "+f"(shifted[i / 2][i % 2]));  // otherwise nvcc keeps a copy for every use, and spills them
  }
#pragma unroll
  for (int i = 0; i < kAccumulators; i++) total[i] = fmaf(fresh[i], shifted[i / 32][i / 2 % 2], total[i]);
}

/** The same in 64 columns with a factor each; the first multiplication is exact (see way_of). */
template <int columnBlock, int shift>
__device__ __forceinline__ void promote_by_line(float (&total)[kAccumulators], const float (&fresh)[kAccumulators],
                                                const ScaleReader& scales, int blockK, const Consumer& self) {
  const unsigned char* rows = scales.factors_a(blockK);
  const unsigned char* columns = scales.factors_b(columnBlock, blockK) + self.column();
  const float upper = power_of_two(__ldg(rows) - kExponentBias + shift);
  const float lower = power_of_two(__ldg(rows + 8) - kExponentBias + shift);
  unsigned pairs[8];
#pragma unroll
  for (int i = 0; i < 8; i++) pairs[i] = __ldg(reinterpret_cast<const unsigned short*>(columns + i * 8));
#pragma unroll
  for (int i = 0; i < 8; i++) {
    const float first = __uint_as_float((pairs[i] & 255u) << 23), second = __uint_as_float(pairs[i] >> 8 << 23);
    float* sums = total + columnBlock * 32 + i * 4;
    const float* products = fresh + columnBlock * 32 + i * 4;
    sums[0] = fmaf(products[0] * upper, first, sums[0]);
    sums[1] = fmaf(products[1] * upper, second, sums[1]);
    sums[2] = fmaf(products[2] * lower, first, sums[2]);
    sums[3] = fmaf(products[3] * lower, second, sums[3]);
  }
}

/** The promotion of one K block: its factors, or 0 where `ways` says that they do not suffice. */
struct Promotion {
  Factors factors;
  Ways ways;
  int blockK;
};

/** total += fresh · 2^(shift - sa - sb), leaving out what is multiplied exactly. */
template <bool kAllByRow, int shift>
__device__ __forceinline__ void promote(float (&total)[kAccumulators], const float (&fresh)[kAccumulators],
                                        const Promotion& promotion, const ScaleReader& scales, const Consumer& self) {
  promote_by_row<shift>(total, fresh, promotion.factors);
  if (kAllByRow || !promotion.ways.have(Way::kByLine)) return;
  if (promotion.ways.of[0] == Way::kByLine) promote_by_line<0, shift>(total, fresh, scales, promotion.blockK, self);
  if constexpr (kColumnBlocks > 1) {
    if (promotion.ways.of[1] == Way::kByLine) promote_by_line<1, shift>(total, fresh, scales, promotion.blockK, self);
  }
}

}  // namespace

#endif
