// Split of float32 operands into pairs of fp16 planes for matmul_split_half.cu (Ootomo & Yokota 2022,
// "Recovering single precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak").
// split_half.cuh says what the planes and the scales hold, and what they lose.
//
// A block of 64×64 whose nonzero magnitudes all lie within 2^28 of one another has one scale for all its lines, so
// that the product promotes its sums by one factor; that is nearly every block of ordinary data. In other blocks
// each line has its own.
//
// kernel   split_half(SplitParams)
//   splits one or two operands in one launch (an operand with blocks = 0 is skipped).
//   grid     (operands[0].blocks + operands[1].blocks, 1, 1);   block (256, 1, 1);   no dynamic shared memory
//   macros   none.   any architecture from sm_80 on
//
// SplitParams, 112 bytes: two SplitOperand of 56 bytes each:
//   0  source             const float*   [batch] matrices of rows × columns, any strides between rows and batches
//   8  planes             fp16*          [batch][2][rows][pitch], hi then lo; 16-byte aligned (128 for TMA)
//  16  scales             BlockScales*   [batch][ceil(rows/64)][ceil(columns/64)]
//  24  sourceBatchStride  int64          elements
//  32  rows               int32
//  36  columns            int32
//  40  sourcePitch        int32          elements between rows of source
//  44  pitch              int32          elements between rows of planes: columns rounded up to a multiple of 8
//  48  blocks             int32          batch · ceil(rows/64) · ceil(columns/64)
//  52  linesAreColumns    int32          1: K runs down the stored matrix (A stored K×M, B stored K×N); 0: along it
// Bound by memory: 4 bytes read and 4 written an element. A dependent launch may begin early; it must wait
// (griddepcontrol.wait) before it reads the planes.

#include "float16.cuh"
#include "split_half.cuh"

namespace {

struct SplitOperand {
  const float* source;
  unsigned short* planes;
  BlockScales* scales;
  long long sourceBatchStride;
  int rows, columns, sourcePitch, pitch, blocks, linesAreColumns;
};

struct SplitParams {
  SplitOperand operands[2];
};
static_assert(sizeof(SplitParams) == 112, "the host packs 112 bytes");

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kVector = 8;                                   // elements a thread converts at once: 16 bytes of fp16
constexpr int kLanesPerRow = kBlock / kVector;               // 8
constexpr int kRowsPerPass = kThreads / kLanesPerRow;        // 32
constexpr int kPasses = kBlock / kRowsPerPass;               // 2
constexpr int kLargestExponent = 126;

/** The magnitudes of some elements; all finite, for Inf and NaN have been taken out. */
struct Range {
  unsigned largest = 0u;    // as bits
  unsigned smallest = ~0u;  // of those that are not zero, as bits less 1, so that zero wraps around to the end
  unsigned marks = 0u;      // kSparse for a zero, kNotFinite for what has been taken out

  __device__ __forceinline__ void add(float x) {
    const unsigned bits = __float_as_uint(x) & 0x7fffffffu;
    largest = max(largest, bits);
    smallest = min(smallest, bits - 1u);
    if (bits == 0u) marks |= kSparse;
  }
  __device__ __forceinline__ void add(const Range& other) {
    largest = max(largest, other.largest);
    smallest = min(smallest, other.smallest);
    marks |= other.marks;
  }
  /** Joins the ranges of the lanes whose numbers differ in the bits from `low` up to `end`. */
  __device__ __forceinline__ void join_lanes(int low, int end) {
#pragma unroll
    for (int mask = low; mask < end; mask *= 2) {
      Range other;
      other.largest = __shfl_xor_sync(0xffffffffu, largest, mask);
      other.smallest = __shfl_xor_sync(0xffffffffu, smallest, mask);
      other.marks = __shfl_xor_sync(0xffffffffu, marks, mask);
      add(other);
    }
  }
  __device__ __forceinline__ void join_warp() {
    largest = __reduce_max_sync(0xffffffffu, largest);
    smallest = __reduce_min_sync(0xffffffffu, smallest);
    marks = __reduce_or_sync(0xffffffffu, marks);
  }
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
    return largest != 0u && ((marks & kSparse) || __uint_as_float(smallest + 1u) * scale <
                                                      __uint_as_float(largest) * scale * power_of_two(-22));
  }
};

/** The block's lines: what each warp knows of their ranges, and then their exponents. */
struct Shared {
  unsigned largest[kWarps][kBlock], smallest[kWarps][kBlock], marks[kWarps][kBlock];
  int exponents[kBlock];

  __device__ __forceinline__ void put(int part, int line, const Range& range) {
    largest[part][line] = range.largest;
    smallest[part][line] = range.smallest;
    marks[part][line] = range.marks;
  }
  __device__ __forceinline__ Range get(int part, int line) const {
    Range range;
    range.largest = largest[part][line];
    range.smallest = smallest[part][line];
    range.marks = marks[part][line];
    return range;
  }
};

__device__ __forceinline__ bool is_finite(float x) { return (__float_as_uint(x) & 0x7fffffffu) < 0x7f800000u; }

__device__ __forceinline__ void split_pair(float first, float second, unsigned& high, unsigned& low) {
  high = pack_float16(first, second);
  const float highFirst = to_float(float16{static_cast<unsigned short>(high & 0xffffu)});
  const float highSecond = to_float(float16{static_cast<unsigned short>(high >> 16)});
  constexpr float shift = 2048.0f;
  low = pack_float16((first - highFirst) * shift, (second - highSecond) * shift);
}

/** Eight consecutive elements of a row; those at or past `count` read as zero. */
__device__ __forceinline__ void load_vector(float (&x)[kVector], const float* address, int count, bool aligned) {
  if (aligned && count >= kVector) {
    const float4 first = *reinterpret_cast<const float4*>(address);
    const float4 second = *reinterpret_cast<const float4*>(address + 4);
    x[0] = first.x, x[1] = first.y, x[2] = first.z, x[3] = first.w;
    x[4] = second.x, x[5] = second.y, x[6] = second.z, x[7] = second.w;
  } else {
#pragma unroll
    for (int i = 0; i < kVector; i++) x[i] = i < count ? address[i] : 0.0f;
  }
}

/** Lines along the rows: eight lanes hold one, and 32 rows are held at once. */
__device__ __forceinline__ void find_row_ranges(Shared& shared, const float (&x)[kPasses][kVector],
                                                const int (&counts)[kPasses], unsigned marks) {
#pragma unroll
  for (int pass = 0; pass < kPasses; pass++) {
    Range range;
#pragma unroll
    for (int i = 0; i < kVector; i++) {
      if (i < counts[pass]) range.add(x[pass][i]);
    }
    range.marks |= marks;
    range.join_lanes(1, kLanesPerRow);
    if (threadIdx.x % kLanesPerRow == 0) {
      shared.put(0, pass * kRowsPerPass + threadIdx.x / kLanesPerRow, range);
    }
  }
}

/** Lines down the columns: each warp holds eight elements of all 64. */
__device__ __forceinline__ void find_column_ranges(Shared& shared, const float (&x)[kPasses][kVector],
                                                   const int (&counts)[kPasses], unsigned marks) {
#pragma unroll
  for (int i = 0; i < kVector; i++) {
    Range range;
#pragma unroll
    for (int pass = 0; pass < kPasses; pass++) {
      if (i < counts[pass]) range.add(x[pass][i]);
    }
    range.marks |= marks;
    range.join_lanes(kLanesPerRow, 32);
    if (threadIdx.x % 32 / kLanesPerRow == 0) {
      shared.put(threadIdx.x / 32, threadIdx.x % kLanesPerRow * kVector + i, range);
    }
  }
}

/** One warp, two lines a lane: chooses the exponents, and writes them and the summary. */
__device__ __forceinline__ void choose_scales(Shared& shared, BlockScales& scales, int parts) {
  const int lane = threadIdx.x;
  Range lines[2], block;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    for (int part = 0; part < parts; part++) lines[i].add(shared.get(part, lane + 32 * i));
    block.add(lines[i]);
  }
  block.join_warp();
  const bool isUniform = block.is_narrow();

  unsigned lowest = 255u, highest = 0u, marks = block.marks & kNotFinite;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const Range& line = lines[i];
    const int exponent = isUniform || line.largest == 0u ? block.exponent() : line.exponent();
    const unsigned factor = kExponentBias - exponent;
    shared.exponents[lane + 32 * i] = exponent;
    scales.factors[lane + 32 * i] = static_cast<unsigned char>(factor);
    lowest = min(lowest, factor);
    highest = max(highest, factor);
    if (!line.is_narrow()) marks |= kWide;
    if (line.is_sparse()) marks |= kSparse;
  }
  lowest = __reduce_min_sync(0xffffffffu, lowest);
  highest = __reduce_max_sync(0xffffffffu, highest);
  marks = __reduce_or_sync(0xffffffffu, marks);
  if (lane == 0) scales.summary = lowest | highest << 8 | marks;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads) split_half(const __grid_constant__ SplitParams params) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
  __shared__ Shared shared;
  const bool isSecond = static_cast<int>(blockIdx.x) >= params.operands[0].blocks;
  const SplitOperand& operand = params.operands[isSecond];
  const int block = blockIdx.x - (isSecond ? params.operands[0].blocks : 0);
  const int rowBlocks = (operand.rows + kBlock - 1) / kBlock;
  const int columnBlocks = (operand.columns + kBlock - 1) / kBlock;
  const int batch = block / (rowBlocks * columnBlocks);
  const int blockInMatrix = block - batch * rowBlocks * columnBlocks;
  const int rowInBlock = threadIdx.x / kLanesPerRow, columnInBlock = threadIdx.x % kLanesPerRow * kVector;
  const int firstRow = blockInMatrix / columnBlocks * kBlock + rowInBlock;
  const int column = blockInMatrix % columnBlocks * kBlock + columnInBlock;

  const float* source = operand.source + batch * operand.sourceBatchStride + column;
  const bool aligned = (reinterpret_cast<unsigned long long>(source) & 15u) == 0 && operand.sourcePitch % 4 == 0;
  float x[kPasses][kVector];
  int counts[kPasses];
#pragma unroll
  for (int pass = 0; pass < kPasses; pass++) {
    const int row = firstRow + pass * kRowsPerPass;
    counts[pass] = row < operand.rows ? operand.columns - column : 0;
    load_vector(x[pass], source + static_cast<long long>(row) * operand.sourcePitch, counts[pass], aligned);
  }
  unsigned marks = 0u;
#pragma unroll
  for (int pass = 0; pass < kPasses; pass++) {
#pragma unroll
    for (int i = 0; i < kVector; i++) {
      if (!is_finite(x[pass][i])) x[pass][i] = 0.0f, marks = kNotFinite;
    }
  }

  if (operand.linesAreColumns) find_column_ranges(shared, x, counts, marks);
  else find_row_ranges(shared, x, counts, marks);
  __syncthreads();
  if (threadIdx.x < 32) choose_scales(shared, operand.scales[block], operand.linesAreColumns ? kWarps : 1);
  __syncthreads();

  const long long planeSize = static_cast<long long>(operand.rows) * operand.pitch;
  unsigned short* planes = operand.planes + 2 * batch * planeSize + column;
#pragma unroll
  for (int pass = 0; pass < kPasses; pass++) {
    const int row = firstRow + pass * kRowsPerPass;
    if (row >= operand.rows || column >= operand.columns) continue;
#pragma unroll
    for (int i = 0; i < kVector; i++) {
      const int line = operand.linesAreColumns ? columnInBlock + i : rowInBlock + pass * kRowsPerPass;
      x[pass][i] *= power_of_two(shared.exponents[line]);
    }
    uint4 high, low;
    split_pair(x[pass][0], x[pass][1], high.x, low.x);
    split_pair(x[pass][2], x[pass][3], high.y, low.y);
    split_pair(x[pass][4], x[pass][5], high.z, low.z);
    split_pair(x[pass][6], x[pass][7], high.w, low.w);
    unsigned short* target = planes + static_cast<long long>(row) * operand.pitch;
    *reinterpret_cast<uint4*>(target) = high;
    *reinterpret_cast<uint4*>(target + planeSize) = low;
  }
}
