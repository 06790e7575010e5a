// Tiles of heads in shared memory, for the attention kernels of every GPU from compute capability 8.0 on: how they are
// filled, and how they leave.
//
// A tile holds rows of HEAD_DIM elements, kPitch from one to the next: 16 bytes more than they fill, so that eight
// neighbouring rows lie in different banks. Rows and columns that do not exist are zeros.
#ifndef ROOFLINE_MMA_TILES_CUH
#define ROOFLINE_MMA_TILES_CUH

#include "flash_params.cuh"
#include "mma.cuh"

namespace {

constexpr bool kIsFloat = sizeof(ELEMENT) == sizeof(float);
/** Elements of 16 bytes. */
constexpr int kVector = kVectorLength<ELEMENT>;
constexpr int kPitch = HEAD_DIM + kVector;

__device__ __forceinline__ int lane_index() { return threadIdx.x % 32; }
__device__ __forceinline__ int warp_index() { return threadIdx.x / 32; }
__device__ __forceinline__ int ceil_div(int a, int b) { return (a + b - 1) / b; }

/** The rows of one head of one batch entry. */
template <typename T>
struct HeadRows {
  T* head;
  int64 stride;
  int count, columns;
  /** Whether pieces of 16 bytes can be read and written as such. */
  bool aligned;

  __device__ __forceinline__ HeadRows(T* tensor, const FlashStrides& strides, int batch, int headIndex, int count,
                                      int columns)
      : head(head_of(tensor, strides, batch, headIndex)), stride(strides.row), count(count), columns(columns) {
    const uint64 offsets = reinterpret_cast<uint64>(head) | static_cast<uint64>(stride) * sizeof(ELEMENT);
    aligned = offsets % 16 == 0 && columns % kVector == 0;
  }
};

/** Begins to copy the rows from `first` on to a tile; all of a block's kThreads take part. */
template <int kRows, int kThreads>
__device__ __forceinline__ void copy_rows(ELEMENT* tile, const HeadRows<const ELEMENT>& rows, int first) {
  constexpr int kPieces = HEAD_DIM / kVector;
  constexpr bool kHasOneColumn = kThreads % kPieces == 0;
  if (rows.aligned && kHasOneColumn) {
    // A thread has every kRowStep-th row.
    constexpr int kRowStep = kHasOneColumn ? kThreads / kPieces : 1;
    const int row = threadIdx.x / kPieces, column = threadIdx.x % kPieces * kVector;
    const int count = column < rows.columns ? rows.count - first - row : 0;
    const ELEMENT* source = rows.head + (first + row) * rows.stride + column;
    ELEMENT* const target = tile + row * kPitch + column;
#pragma unroll
    for (int i = 0; i < kRows; i += kRowStep, source += kRowStep * rows.stride) {
      if (kRows % kRowStep != 0 && row + i >= kRows) break;
      copy_in_background(target + i * kPitch, i < count ? source : rows.head, i < count);
    }
  } else if (rows.aligned) {
#pragma unroll
    for (int begin = 0; begin < kRows * kPieces; begin += kThreads) {
      const int i = begin + threadIdx.x, row = i / kPieces, column = i % kPieces * kVector;
      if (kRows * kPieces % kThreads != 0 && row >= kRows) break;
      const bool exists = first + row < rows.count && column < rows.columns;
      const ELEMENT* const source = exists ? rows.head + (first + row) * rows.stride + column : rows.head;
      copy_in_background(tile + row * kPitch + column, source, exists);
    }
  } else {
    for (int i = threadIdx.x; i < kRows * HEAD_DIM; i += kThreads) {
      const int row = i / HEAD_DIM, column = i % HEAD_DIM;
      const bool exists = first + row < rows.count && column < rows.columns;
      tile[row * kPitch + column] = exists ? rows.head[(first + row) * rows.stride + column] : ELEMENT{};
    }
  }
}

/**
 * One warp writes kRows rows of a tile, from column `column` on and kColumns of them, to the rows of a head from `first`
 * on, those that exist.
 */
template <int kRows, int kColumns>
__device__ __forceinline__ void store_rows(const HeadRows<ELEMENT>& rows, const ELEMENT* tile, int first, int column) {
  if (rows.aligned) {
    constexpr int kPieces = kColumns / kVector;
    for (int i = lane_index(); i < kRows * kPieces; i += 32) {
      const int row = i / kPieces, at = column + i % kPieces * kVector;
      if (first + row < rows.count && at < rows.columns) {
        store_vector(rows.head + (first + row) * rows.stride + at, load_vector<kVector>(tile + row * kPitch + at));
      }
    }
  } else {
    for (int i = lane_index(); i < kRows * kColumns; i += 32) {
      const int row = i / kColumns, at = column + i % kColumns;
      if (first + row < rows.count && at < rows.columns) {
        rows.head[(first + row) * rows.stride + at] = tile[row * kPitch + at];
      }
    }
  }
}

}  // namespace

#endif
