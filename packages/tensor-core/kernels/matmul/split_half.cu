// Split of float32 operands into pairs of fp16 planes for matmul_split_half.cu (Ootomo & Yokota 2022,
// "Recovering single precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak").
// split_half.cuh says what the planes, the factors and the summaries hold, and what they lose.
//
// A "plain" block, as nearly all blocks of ordinary data are, has one scale for all its lines: it is finite, and its
// nonzero elements are within 2^28 of one another. Only other blocks are examined line by line, which takes longer.
// Each of their lines gets a scale of its own; columns of op(B), which the product has no fast way for, only where
// one scale would lose too much.
//
// kernel   split_half(SplitParams)
//   splits A and B in one launch (an operand with blocks = 0 is skipped).
//   grid     (operands[0].blocks + operands[1].blocks, 1, 1);   block (256, 1, 1);   no dynamic shared memory
//   macros   none.   any architecture from sm_80 on
//
// SplitParams, 128 bytes: two SplitOperand of 64 bytes each, A's and B's:
//   0  source             const float*   [batch] matrices of rows × columns, any strides between rows and batches
//   8  planes             fp16*          [batch][2][rows][pitch], hi then lo; 16-byte aligned (128 for TMA)
//  16  summaries          uint32*        [batch][ceil(rows/64)][ceil(columns/64)]
//  24  factors            uint8*         likewise, and [64] lines; 16-byte aligned
//  32  sourceBatchStride  int64          elements
//  40  rows               int32
//  44  columns            int32
//  48  sourcePitch        int32          elements between rows of source
//  52  pitch              int32          elements between rows of planes: columns rounded up to a multiple of 8
//  56  blocks             int32          batch · ceil(rows/64) · ceil(columns/64)
//  60  linesAreColumns    int32          1: K runs down the stored matrix (A stored K×M, B stored K×N); 0: along it
// Bound by memory: 4 bytes read and 4 written an element. A dependent launch may begin early; it must wait
// (griddepcontrol.wait) before it reads the planes.

#include "quarter_line.cuh"
#include "split_elements.cuh"

namespace {

struct SplitParams {
  SplitOperand operands[2];
};
static_assert(sizeof(SplitParams) == 128, "the host packs 128 bytes");

constexpr int kBlocksPerMultiprocessor = 6;  // what 40 registers allow

/** Writes the scales of a block whose lines share one factor. */
__device__ __forceinline__ void write_scales(const Place& place, unsigned factor, unsigned summary) {
  const unsigned four = factor * 0x01010101u;
  if (threadIdx.x < kBlock / 16) place.factors()[threadIdx.x] = uint4{four, four, four, four};
  if (threadIdx.x == 0) place.operand.summaries[place.block] = summary;
}

/**
 * Chooses and writes the scales of a block that is not plain, and leaves its lines' exponents. `exponent` is the whole
 * block's; `mayShare`: all lines may use it. The product waits for the slowest block, so this reads shared memory: a second
 * read of global memory would take longest. Not inlined, because that would cost registers, and so occupancy, where all blocks
 * are plain.
 */
__device__ __attribute__((noinline)) void scale_by_line(const SplitOperand& operand, int number, int exponent,
                                                        bool mayShare, const SharedBlock& block,
                                                        int (&exponents)[kBlock]) {
  __syncthreads();
  const Place place(operand, number);
  const QuarterLine line(place, block);
  int own = exponent;
  unsigned summary = 0u;
#pragma unroll 1
  for (bool shared = mayShare;; shared = false) {
    if (!shared && line.largest != 0u) own = exponent_for(line.largest);
    summary = summarize(line, own);
    if (!shared || loses_little(summary)) break;
  }
  if (threadIdx.x % 4 == 0) {
    exponents[threadIdx.x / 4] = own;
    reinterpret_cast<unsigned char*>(place.factors())[threadIdx.x / 4] = static_cast<unsigned char>(kExponentBias - own);
  }
  if (threadIdx.x == 0) operand.summaries[number] = summary;
  __syncthreads();
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor)
split_half(const __grid_constant__ SplitParams params) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
  const bool isB = static_cast<int>(blockIdx.x) >= params.operands[0].blocks;
  const SplitOperand& operand = params.operands[isB];
  const Place place(operand, blockIdx.x - (isB ? params.operands[0].blocks : 0));
  Elements elements;
  elements.load(place);

  const BlockRange range = range_of_block(place, elements);
  const int exponent = exponent_for(range.largest);
  float scale = 1.0f;
  if (range.is_finite() && range.is_narrow()) {
    const unsigned factor = kExponentBias - exponent;
    write_scales(place, factor, factor | factor << 8 | range.ranges() << kRangeShift);
    scale = power_of_two(exponent);
  } else if (range.is_finite()) {
    alignas(16) __shared__ SharedBlock block;  // for float4
    __shared__ int exponents[kBlock];
    elements.store(place, block);
    scale_by_line(operand, place.block, exponent, isB, block, exponents);
    elements.load(place, block, exponents);
  } else {
    // The product takes the operand itself instead; zeros keep NaN out of its sums.
    write_scales(place, kExponentBias, kNotFinite);
    elements = Elements{};
  }
  elements.split(place, scale);
}
