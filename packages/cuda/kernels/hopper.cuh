// What Hopper (sm_90a) has and C++ does not: barriers in shared memory, bulk copies of tensors (TMA), and the
// asynchronous products of a warpgroup. Each function is one instruction of the PTX manual, or a few that belong together.
#ifndef ROOFLINE_HOPPER_CUH
#define ROOFLINE_HOPPER_CUH

#include "tensor_map.cuh"

namespace {

__device__ __forceinline__ void barrier_init(unsigned barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

/** Makes barrier_init visible to TMA, and to other threads once they have synchronized. */
__device__ __forceinline__ void publish_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ __forceinline__ void barrier_expect(unsigned barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void barrier_wait(unsigned barrier, unsigned parity) {
  unsigned done = 0;
  while (!done) {
    asm volatile(
        "{\n .reg .pred complete;\n"
        " mbarrier.try_wait.parity.shared::cta.b64 complete, [%1], %2;\n selp.u32 %0, 1, 0, complete;\n}"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  }
}

__device__ __forceinline__ void barrier_arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void prefetch_map(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/** Copies the 64×64 box at (column, row) of one plane to shared memory, and counts its bytes at `barrier`. */
__device__ __forceinline__ void copy_box(const TensorMap& map, unsigned target, unsigned barrier, int column, int row,
                                         int plane, int batch) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(target),
      "l"(&map), "r"(barrier), "r"(column), "r"(row), "r"(plane), "r"(batch)
      : "memory");
}

/**
 * Shared-memory matrix descriptor, 128-byte swizzle: 8 rows of 128 bytes make 1024. `boxBytes`: distance between neighbouring
 * boxes, where a matrix has several side by side.
 */
template <int boxBytes>
__device__ __forceinline__ unsigned long long matrix_descriptor(unsigned address) {
  constexpr unsigned long long swizzle128 = 1ull << 62, eightRows = (1024ull >> 4) << 32,
                               nextBox = (static_cast<unsigned long long>(boxBytes) >> 4) << 16;
  return swizzle128 | eightRows | nextBox | ((address & 0x3ffffu) >> 4);
}

__device__ __forceinline__ void multiply_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void multiply_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

/** Waits until at most `pending` groups run; `sum`, whose group has ended, is not read before that. */
template <int pending, int count>
__device__ __forceinline__ void multiply_wait(float (&sum)[count]) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
#pragma unroll
  for (int i = 0; i < count; i++) asm volatile("" : "+f"(sum[i])::"memory");
}

}  // namespace

#endif
