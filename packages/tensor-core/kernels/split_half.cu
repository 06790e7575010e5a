// Split of float32 operands into pairs of fp16 planes for matmul_split_half.cu (Ootomo & Yokota 2022,
// "Recovering single precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak").
// split_half.cuh says what the planes and the scales hold, and what they lose.
//
// A plain block has one scale for all its lines, so that the product promotes its sums by one factor. Only other
// blocks are looked at line by line, which takes several times as long.
//
// kernel   split_half(SplitParams)
//   splits one or two operands in one launch (an operand with blocks = 0 is skipped).
//   grid     (operands[0].blocks + operands[1].blocks, 1, 1);   block (256, 1, 1);   no dynamic shared memory
//   macros   none.   any architecture from sm_80 on
//
// SplitParams, 128 bytes: two SplitOperand of 64 bytes each:
//   0  source             const float*   [batch] matrices of rows × columns, any strides between rows and batches
//   8  planes             fp16*          [batch][2][rows][pitch], hi then lo; 16-byte aligned (128 for TMA)
//  16  exponents          int32*         [batch][ceil(rows/64)][ceil(columns/64)]: -s of each block, or kNotPlain
//  24  scales             BlockScales*   likewise
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
  int* exponents;
  BlockScales* scales;
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
constexpr int kLargestExponent = 126;
constexpr int kBlocksPerMultiprocessor = 6;                  // what 40 registers allow

/** Magnitudes of elements, as bits. */
struct Range {
  unsigned largest = 0u;    // no float's bits where there are Inf or NaN
  unsigned smallest = ~0u;  // of those that are not zero, less 1, so that zero wraps around to the end
  bool hasZero = false;

  __device__ __forceinline__ void add(float x) {
    const unsigned bits = __float_as_uint(x) & 0x7fffffffu;
    largest = max(largest, bits);
    smallest = min(smallest, bits - 1u);
    hasZero |= bits == 0u;
  }
  __device__ __forceinline__ void add(const Range& other) {
    largest = max(largest, other.largest);
    smallest = min(smallest, other.smallest);
    hasZero |= other.hasZero;
  }
  __device__ __forceinline__ void join_warp() {
    largest = __reduce_max_sync(0xffffffffu, largest);
    smallest = __reduce_min_sync(0xffffffffu, smallest);
    hasZero = __any_sync(0xffffffffu, hasZero);
  }
  __device__ __forceinline__ bool is_finite() const { return largest < 0x7f800000u; }
  /** s with largest·2^s in [2^14, 2^15), held to [-113, 126] so that 2^s and 2^-s are normal floats. */
  __device__ __forceinline__ int exponent() const {
    if (largest == 0u) return 0;
    const int floorLog2 = max(static_cast<int>(largest >> 23) - kExponentBias, 14 - kLargestExponent);
    return 14 - floorLog2;
  }
  /** Whether hi keeps its digits in all elements that are not zero. */
  __device__ __forceinline__ bool is_narrow() const {
    const int s = exponent();
    return largest == 0u || s == kLargestExponent ||
           __uint_as_float(smallest + 1u) * power_of_two(s) >= power_of_two(-14);
  }
  __device__ __forceinline__ bool is_sparse() const {
    const float scale = power_of_two(exponent());
    return largest != 0u && (hasZero || __uint_as_float(smallest + 1u) * scale <
                                            __uint_as_float(largest) * scale * power_of_two(-22));
  }
  __device__ __forceinline__ unsigned marks() const {
    return (is_narrow() ? 0u : kWide) | (is_sparse() ? kSparse : 0u);
  }
};

/** Where a block lies, and which of its elements this thread has: eight in each of two rows. */
struct Place {
  const SplitOperand& operand;
  int block, batch, row, column;  // of the thread's first element, in the matrix

  __device__ __forceinline__ Place(const SplitOperand& operand, int block) : operand(operand), block(block) {
    const int rowBlocks = (operand.rows + kBlock - 1) / kBlock;
    const int columnBlocks = (operand.columns + kBlock - 1) / kBlock;
    const int rowBlock = block / columnBlocks;  // of all matrices
    batch = operand.blocks == rowBlocks * columnBlocks ? 0 : rowBlock / rowBlocks;
    row = (rowBlock - batch * rowBlocks) * kBlock + threadIdx.x / kLanesPerRow;
    column = (block - rowBlock * columnBlocks) * kBlock + threadIdx.x % kLanesPerRow * kVector;
  }

  __device__ __forceinline__ int row_in_block(int pass) const { return threadIdx.x / kLanesPerRow + pass * kRowsPerPass; }
  __device__ __forceinline__ int column_in_block(int i) const { return threadIdx.x % kLanesPerRow * kVector + i; }
  __device__ __forceinline__ bool exists(int pass) const {
    return row + pass * kRowsPerPass < operand.rows && column < operand.columns;
  }
};

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

  __device__ __forceinline__ Range range_of_row(const Place& place, int pass) const {
    Range range;
#pragma unroll
    for (int i = 0; i < kVector; i++) range.add(of[pass][i]);
    range.hasZero &= place.exists(pass);
    return range;
  }
  __device__ __forceinline__ Range range_of_column(const Place& place, int i) const {
    Range range;
#pragma unroll
    for (int pass = 0; pass < kPasses; pass++) {
      if (place.exists(pass)) range.add(of[pass][i]);
    }
    return range;
  }

  /** Writes the planes; `scale(pass, i)` is the factor of an element. */
  template <typename Scale>
  __device__ __forceinline__ void split(const Place& place, const Scale& scale) const {
    const SplitOperand& operand = place.operand;
    const long long planeSize = static_cast<long long>(operand.rows) * operand.pitch;
    unsigned short* planes = operand.planes + 2 * place.batch * planeSize + place.column;
#pragma unroll
    for (int pass = 0; pass < kPasses; pass++) {
      if (!place.exists(pass)) continue;
      const auto scaled = [&](int i) { return of[pass][i] * scale(pass, i); };
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
__device__ __forceinline__ Range range_of_block(const Place& place, const Elements& elements) {
  __shared__ uint2 ofWarps[kWarps];
  constexpr unsigned zeroBit = 1u << 31;  // no magnitude has it
  Range range;
#pragma unroll
  for (int pass = 0; pass < kPasses; pass++) range.add(elements.range_of_row(place, pass));
  range.join_warp();
  if (threadIdx.x % 32 == 0) {
    ofWarps[threadIdx.x / 32] = uint2{range.largest | (range.hasZero ? zeroBit : 0u), range.smallest};
  }
  __syncthreads();
  const uint2 part = ofWarps[threadIdx.x % kWarps];
  range.largest = part.x & ~zeroBit;
  range.smallest = part.y;
  range.hasZero = part.x & zeroBit;
  range.join_warp();
  return range;
}

/** The ranges of a block's lines, and their exponents. */
struct Lines {
  unsigned largest[kBlock], smallest[kBlock], hasZero[kBlock];
  int exponents[kBlock];

  __device__ __forceinline__ void clear(int line) { largest[line] = 0u, smallest[line] = ~0u, hasZero[line] = 0u; }
  __device__ __forceinline__ void add(int line, const Range& range) {
    atomicMax(&largest[line], range.largest);
    atomicMin(&smallest[line], range.smallest);
    if (range.hasZero) hasZero[line] = 1u;
  }
  __device__ __forceinline__ Range at(int line) const {
    Range range;
    range.largest = largest[line], range.smallest = smallest[line], range.hasZero = hasZero[line];
    return range;
  }
};

/** One warp, two lines a lane: chooses the exponents, and writes them and the summary. */
__device__ __forceinline__ void choose_scales(Lines& lines, BlockScales& scales, int ofZeros) {
  const int lane = threadIdx.x;
  unsigned lowest = 255u, highest = 0u, marks = 0u;
#pragma unroll
  for (int line = lane; line < kBlock; line += 32) {
    const Range range = lines.at(line);
    const int exponent = range.largest == 0u ? ofZeros : range.exponent();
    const unsigned factor = kExponentBias - exponent;
    lines.exponents[line] = exponent;
    scales.factors[line] = static_cast<unsigned char>(factor);
    lowest = min(lowest, factor);
    highest = max(highest, factor);
    marks |= range.marks();
  }
  lowest = __reduce_min_sync(0xffffffffu, lowest);
  highest = __reduce_max_sync(0xffffffffu, highest);
  marks = __reduce_or_sync(0xffffffffu, marks);
  if (lane == 0) scales.summary = lowest | highest << 8 | marks;
}

/** Splits a block with a power of two for each of its lines. */
__device__ __forceinline__ void split_by_line(const Place& place, int ofZeros) {
  __shared__ Lines lines;
  if (threadIdx.x < kBlock) lines.clear(threadIdx.x);
  __syncthreads();
  Elements elements;
  elements.load(place);
  const bool linesAreColumns = place.operand.linesAreColumns;
  if (linesAreColumns) {
#pragma unroll
    for (int i = 0; i < kVector; i++) lines.add(place.column_in_block(i), elements.range_of_column(place, i));
  } else {
#pragma unroll
    for (int pass = 0; pass < kPasses; pass++) lines.add(place.row_in_block(pass), elements.range_of_row(place, pass));
  }
  __syncthreads();
  if (threadIdx.x < 32) choose_scales(lines, place.operand.scales[place.block], ofZeros);
  __syncthreads();
  elements.split(place, [&](int pass, int i) {
    return power_of_two(lines.exponents[linesAreColumns ? place.column_in_block(i) : place.row_in_block(pass)]);
  });
}

/**
 * Splits a block that is not plain. Nothing is kept from the look at it as a whole, and nothing inlined: that would
 * cost registers, and with them occupancy, where all blocks are plain.
 */
__device__ __attribute__((noinline)) void split_not_plain(const SplitOperand& operand, int block, bool isFinite, int exponent) {
  const Place place(operand, block);
  if (threadIdx.x == 0) operand.exponents[block] = kNotPlain;
  if (isFinite) return split_by_line(place, exponent);
  // The product takes the operand itself instead; zeros keep NaN out of its sums until then.
  if (threadIdx.x == 0) operand.scales[block].summary = kExponentBias | kExponentBias << 8 | kNotFinite;
  Elements zeros{};
  zeros.split(place, [](int, int) { return 1.0f; });
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor)
split_half(const __grid_constant__ SplitParams params) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
  const bool isSecond = static_cast<int>(blockIdx.x) >= params.operands[0].blocks;
  const SplitOperand& operand = params.operands[isSecond];
  const Place place(operand, blockIdx.x - (isSecond ? params.operands[0].blocks : 0));
  Elements elements;
  elements.load(place);

  const Range range = range_of_block(place, elements);
  const int exponent = range.exponent();
  if (!range.is_finite() || !range.is_narrow()) {
    return split_not_plain(operand, place.block, range.is_finite(), exponent);
  }
  const float scale = power_of_two(exponent);
  elements.split(place, [&](int, int) { return scale; });
  if (threadIdx.x == 0) {
    const unsigned factor = kExponentBias - exponent;
    operand.exponents[place.block] = -exponent;
    operand.scales[place.block].summary = factor | factor << 8 | range.marks();
  }
}
