// The parameters of split_half.cu for an operand, and the location of a block in it.
#ifndef ROOFLINE_SPLIT_PLACE_CUH
#define ROOFLINE_SPLIT_PLACE_CUH

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

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kVector = 8;                                   // elements a thread converts at once: 16 bytes of fp16
constexpr int kLanesPerRow = kBlock / kVector;               // 8
constexpr int kRowsPerPass = kThreads / kLanesPerRow;        // 32
constexpr int kPasses = kBlock / kRowsPerPass;               // 2

/** The location of a block, and which of its elements this thread holds: eight in each of two rows. */
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

}  // namespace

#endif
