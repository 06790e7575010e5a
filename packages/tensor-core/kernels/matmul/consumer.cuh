// The position of a multiplying warpgroup of matmul_split_half.cu, and of a thread in it.
#ifndef ROOFLINE_CONSUMER_CUH
#define ROOFLINE_CONSUMER_CUH

#include "hopper.cuh"

namespace {

/** One warpgroup's position in its block. */
struct Consumer {
  int warpgroup, thread;  // thread within the warpgroup

  __device__ __forceinline__ void sync() const {
    asm volatile("bar.sync %0, 128;" ::"r"(1 + warpgroup) : "memory");
  }
  /** The accumulators of a thread: rows row() and row() + 8 of 64, columns 8i + column() + {0, 1} of the tile. */
  __device__ __forceinline__ int row() const { return thread / 32 * 16 + thread % 32 / 4; }
  __device__ __forceinline__ int column() const { return thread % 4 * 2; }
  /** Each warp releases for itself, because it has waited only for its own products. */
  __device__ __forceinline__ void release(unsigned emptied) const {
    if (thread % 32 == 0) barrier_arrive(emptied);
  }
};

}  // namespace

#endif
