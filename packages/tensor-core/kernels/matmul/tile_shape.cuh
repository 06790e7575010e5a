// The sizes that follow from the macros of matmul_split_half.cu.
#ifndef ROOFLINE_TILE_SHAPE_CUH
#define ROOFLINE_TILE_SHAPE_CUH

#include "split_half.cuh"

namespace {

constexpr int kConsumers = BLOCK_M / 64;             // warpgroups that multiply, 64 rows each
constexpr int kThreads = 128 * (kConsumers + 1);
constexpr int kAccumulators = BLOCK_N / 2;           // floats a thread holds of its warpgroup's 64 × BLOCK_N
constexpr int kColumnBlocks = BLOCK_N / 64;
constexpr int kBoxBytes = 64 * 64 * 2;
constexpr int kPlaneBytesA = kConsumers * kBoxBytes;
constexpr int kPlaneBytesB = kColumnBlocks * kBoxBytes;
constexpr int kStageBytes = 2 * (kPlaneBytesA + kPlaneBytesB);

}  // namespace

#endif
