// Split of float32 operands into pairs of fp16 planes for matmul_split_half.cu (Ootomo & Yokota 2022,
// "Recovering single precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak").
// split_half.cuh says what the planes, the factors and the summaries hold, and what they lose.
//
// A "plain" block, as nearly all of ordinary data are, has one scale for all its lines: it is finite, and its elements
// that are not zero lie within 2^28 of one another. Only other blocks are looked at line by line, which takes longer.
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

#include "float16.cuh"
#include "split_half.cuh"

namespace {

struct SplitOperand {
  const float* source;
  unsigned short* planes;
  unsigned* summaries;
  unsigned char* factors;
  long long sourceBatchStride;
  int rows, columns, sourcePitch, pitch, blocks, linesAreColumns;
};

struct SplitParams {
  SplitOperand operands[2];
};
static_assert(sizeof(SplitParams) == 128, "the host packs 128 bytes");

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kVector = 8;                                   // elements a thread converts at once: 16 bytes of fp16
constexpr int kLanesPerRow = kBlock / kVector;               // 8
constexpr int kRowsPerPass = kThreads / kLanesPerRow;        // 32
constexpr int kPasses = kBlock / kRowsPerPass;               // 2
constexpr int kLargestExponent = 114;
constexpr int kBlocksPerMultiprocessor = 6;                  // what 40 registers allow
constexpr unsigned kLittleLoss = 7;                          // as much as a line with a scale of its own may lose

/** s with x·2^s in [2^14, 2^15), held to [-113, 114], where no digit of a float is lost; 0 for 0. */
__device__ __forceinline__ int exponent_for(unsigned magnitude) {
  if (magnitude == 0u) return 0;
  return 14 - max(static_cast<int>(magnitude >> 23) - kExponentBias, 14 - kLargestExponent);
}

/** The least magnitude, as bits, that times 2^s leaves hi a normal number: below it, but for 0, elements are lost. */
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

/** The loss of a line that has `lost` elements, by the element of magnitude `element`. */
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

/** Magnitudes of a block's elements, as bits; those that are not zero, less 1, so that zero wraps around to the end. */
struct BlockRange {
  unsigned largest = 0u;  // no float's bits where there are Inf or NaN
  unsigned smallest = ~0u, secondSmallest = ~0u;
  int zeros = 0;  // how many; more than one makes no difference

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
  /** Whether hi keeps its digits in all elements that are not zero. */
  __device__ __forceinline__ bool is_narrow() const {
    return largest == 0u || smallest + 1u >= least_kept(exponent_for(largest));
  }
  /** The codes of its ranges, where it is_narrow. No line's are more. */
  __device__ __forceinline__ unsigned ranges() const {
    const unsigned least = smallest + 1u, next = secondSmallest == ~0u ? ~0u : secondSmallest + 1u;
    const unsigned second = zeros == 0 ? next : zeros == 1 ? least : 0u;
    return range_code(largest, zeros == 0 ? least : 0u) | range_code(largest, second) << kSecond;
  }
};

/** Where a block lies, and which of its elements this thread has: eight in each of two rows. */
struct Place {
  const SplitOperand& operand;
  int block, batch;
  int firstRow, firstColumn;  // of the block, in the matrix
  int row, column;            // of the thread's first element

  __device__ __forceinline__ Place(const SplitOperand& operand, int block) : operand(operand), block(block) {
    const int rowBlocks = (operand.rows + kBlock - 1) / kBlock;
    const int columnBlocks = (operand.columns + kBlock - 1) / kBlock;
    const int rowBlock = block / columnBlocks;  // of all matrices
    batch = operand.blocks == rowBlocks * columnBlocks ? 0 : rowBlock / rowBlocks;
    firstRow = (rowBlock - batch * rowBlocks) * kBlock;
    firstColumn = (block - rowBlock * columnBlocks) * kBlock;
    row = firstRow + threadIdx.x / kLanesPerRow;
    column = firstColumn + threadIdx.x % kLanesPerRow * kVector;
  }

  __device__ __forceinline__ int row_in_block(int pass) const { return threadIdx.x / kLanesPerRow + pass * kRowsPerPass; }
  __device__ __forceinline__ int column_in_block(int i) const { return threadIdx.x % kLanesPerRow * kVector + i; }
  __device__ __forceinline__ bool exists(int pass) const {
    return row + pass * kRowsPerPass < operand.rows && column < operand.columns;
  }
  __device__ __forceinline__ int line(int pass, int i) const {
    return operand.linesAreColumns ? column_in_block(i) : row_in_block(pass);
  }
  __device__ __forceinline__ uint4* factors() const {
    return reinterpret_cast<uint4*>(operand.factors + static_cast<long long>(block) * kBlock);
  }
};

/** A block in shared memory. The pitch keeps rows aligned, and a warp's lines in banks of their own. */
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

  /** Each by the power of two of its line. */
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

/** A quarter of a line: magnitudes, as bits. Four neighbouring lanes have the quarters of one line. */
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
    // Of K, from the first element on.
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

/** The summary of the block whose lines the threads have. */
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

/** Of a block whose lines have one factor. */
__device__ __forceinline__ void write_scales(const Place& place, unsigned factor, unsigned summary) {
  const unsigned four = factor * 0x01010101u;
  if (threadIdx.x < kBlock / 16) place.factors()[threadIdx.x] = uint4{four, four, four, four};
  if (threadIdx.x == 0) place.operand.summaries[place.block] = summary;
}

/**
 * Chooses and writes the scales of a block that is not plain, and leaves its lines' exponents. `exponent` is the whole
 * block's; `mayShare`: it may be that of all lines. The product waits for the last block of all: hence shared memory,
 * where a second look at memory would take longest. Nothing is inlined, for that would cost registers, and with them
 * occupancy, where all blocks are plain.
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
    // The product takes the operand itself instead; zeros keep NaN out of its sums until then.
    write_scales(place, kExponentBias, kNotFinite);
    elements = Elements{};
  }
  elements.split(place, scale);
}
