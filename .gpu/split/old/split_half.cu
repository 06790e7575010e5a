// Split of float32 operands into pairs of fp16 planes for matmul_split_half.cu (Ootomo & Yokota 2022,
// "Recovering single precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak").
//
// Each 64×64 block of the matrix gets one power of two 2^s, chosen so that the block's largest finite
// magnitude lands in [2^14, 2^15). A block belongs to the stored matrix, not to its use, so one split
// serves the matrix both as it is and transposed. Then, element by element,
//     hi = fp16(x·2^s),   lo = fp16((x·2^s - hi)·2^11),   x ≈ 2^-s·(hi + 2^-11·lo)
// keeps 22 to 23 significant bits of every x down to 2^-28 of its block's largest, and fewer below.
// Inf and NaN stay in hi, with lo = 0; they do not count for the scale.
//
// kernel   split_half(SplitParams)
//   splits one or two operands in one launch (an operand with blocks = 0 is skipped).
//   grid     (operands[0].blocks + operands[1].blocks, 1, 1);   block (256, 1, 1);   no dynamic shared memory
//   macros   none.   any architecture from sm_80 on
//
// SplitParams, 112 bytes: two SplitOperand of 56 bytes each:
//   0  source             const float*   [batch] matrices of rows × columns, any strides between rows and batches
//   8  planes             fp16*          [batch][2][rows][pitch], hi then lo; 16-byte aligned (128 for TMA)
//  16  exponents          int32*         [batch][ceil(rows/64)][ceil(columns/64)]: s of each block
//  24  sourceBatchStride  int64          elements
//  32  rows               int32
//  36  columns            int32
//  40  sourcePitch        int32          elements between rows of source
//  44  pitch              int32          elements between rows of planes: columns rounded up to a multiple of 8
//  48  blocks             int32          batch · ceil(rows/64) · ceil(columns/64)
//  52  (padding)
// Bound by memory: 4 bytes read and 4 written an element. A dependent launch may begin early; it must wait
// (griddepcontrol.wait) before it reads the planes.

namespace {

struct SplitOperand {
  const float* source;
  unsigned short* planes;
  int* exponents;
  long long sourceBatchStride;
  int rows, columns, sourcePitch, pitch, blocks;
};

struct SplitParams {
  SplitOperand operands[2];
};
static_assert(sizeof(SplitParams) == 112, "the host packs 112 bytes");

constexpr int kBlock = 64;
constexpr int kThreads = 256;
constexpr int kVector = 8;                                   // elements a thread converts at once: 16 bytes of fp16
constexpr int kLanesPerRow = kBlock / kVector;               // 8
constexpr int kRowsPerPass = kThreads / kLanesPerRow;        // 32
constexpr int kPasses = kBlock / kRowsPerPass;               // 2
constexpr unsigned kInfinityBits = 0x7f800000u;

__device__ __forceinline__ float power_of_two(int exponent) { return __int_as_float((exponent + 127) << 23); }

__device__ __forceinline__ unsigned finite_magnitude_bits(float x) {
  const unsigned bits = __float_as_uint(x) & 0x7fffffffu;
  return bits < kInfinityBits ? bits : 0u;
}

/** s with largest·2^s in [2^14, 2^15), held to [-113, 126] so that 2^s is a normal float. */
__device__ __forceinline__ int block_exponent(unsigned largestBits) {
  if (largestBits == 0u) return 0;
  const int floorLog2 = max(static_cast<int>(largestBits >> 23) - 127, 14 - 126);
  return 14 - floorLog2;
}

/** Two floats to packed fp16 (first in the low half), rounded to nearest even. */
__device__ __forceinline__ unsigned pack_half2(float first, float second) {
  unsigned packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(second), "f"(first));
  return packed;
}

__device__ __forceinline__ float2 unpack_half2(unsigned packed) {
  float2 pair;
  asm("{\n .reg .b16 low, high;\n mov.b32 {low, high}, %2;\n cvt.f32.f16 %0, low;\n cvt.f32.f16 %1, high;\n}"
      : "=f"(pair.x), "=f"(pair.y)
      : "r"(packed));
  return pair;
}

__device__ __forceinline__ float residual(float scaled, float high) {
  return finite_magnitude_bits(scaled) || scaled == 0.0f ? (scaled - high) * 2048.0f : 0.0f;
}

__device__ __forceinline__ void split_pair(float first, float second, unsigned& high, unsigned& low) {
  high = pack_half2(first, second);
  const float2 rounded = unpack_half2(high);
  low = pack_half2(residual(first, rounded.x), residual(second, rounded.y));
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

__device__ __forceinline__ unsigned largest_in_block(unsigned bits) {
  __shared__ unsigned warpLargest[kThreads / 32];
  bits = __reduce_max_sync(0xffffffffu, bits);
  if (threadIdx.x % 32 == 0) warpLargest[threadIdx.x / 32] = bits;
  __syncthreads();
  return __reduce_max_sync(0xffffffffu, warpLargest[threadIdx.x % (kThreads / 32)]);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads) split_half(const __grid_constant__ SplitParams params) {
  asm volatile("griddepcontrol.launch_dependents;");
  const bool isSecond = static_cast<int>(blockIdx.x) >= params.operands[0].blocks;
  const SplitOperand& operand = params.operands[isSecond];
  const int block = blockIdx.x - (isSecond ? params.operands[0].blocks : 0);
  const int rowBlocks = (operand.rows + kBlock - 1) / kBlock;
  const int columnBlocks = (operand.columns + kBlock - 1) / kBlock;
  const int batch = block / (rowBlocks * columnBlocks);
  const int blockInMatrix = block - batch * rowBlocks * columnBlocks;
  const int firstRow = blockInMatrix / columnBlocks * kBlock + threadIdx.x / kLanesPerRow;
  const int column = blockInMatrix % columnBlocks * kBlock + threadIdx.x % kLanesPerRow * kVector;

  const float* source = operand.source + batch * operand.sourceBatchStride + column;
  const bool aligned = (reinterpret_cast<unsigned long long>(source) & 15u) == 0 && operand.sourcePitch % 4 == 0;
  float x[kPasses][kVector];
#pragma unroll
  for (int pass = 0; pass < kPasses; pass++) {
    const int row = firstRow + pass * kRowsPerPass;
    const int count = row < operand.rows ? operand.columns - column : 0;
    load_vector(x[pass], source + static_cast<long long>(row) * operand.sourcePitch, count, aligned);
  }

  unsigned largest = 0u;
#pragma unroll
  for (int pass = 0; pass < kPasses; pass++) {
#pragma unroll
    for (int i = 0; i < kVector; i++) largest = max(largest, finite_magnitude_bits(x[pass][i]));
  }
  const int exponent = block_exponent(largest_in_block(largest));
  if (threadIdx.x == 0) operand.exponents[block] = exponent;

  const float scale = power_of_two(exponent);
  const long long planeSize = static_cast<long long>(operand.rows) * operand.pitch;
  unsigned short* planes = operand.planes + 2 * batch * planeSize + column;
#pragma unroll
  for (int pass = 0; pass < kPasses; pass++) {
    const int row = firstRow + pass * kRowsPerPass;
    if (row >= operand.rows || column >= operand.columns) continue;
    uint4 high, low;
    split_pair(x[pass][0] * scale, x[pass][1] * scale, high.x, low.x);
    split_pair(x[pass][2] * scale, x[pass][3] * scale, high.y, low.y);
    split_pair(x[pass][4] * scale, x[pass][5] * scale, high.z, low.z);
    split_pair(x[pass][6] * scale, x[pass][7] * scale, high.w, low.w);
    unsigned short* target = planes + static_cast<long long>(row) * operand.pitch;
    *reinterpret_cast<uint4*>(target) = high;
    *reinterpret_cast<uint4*>(target + planeSize) = low;
  }
}
