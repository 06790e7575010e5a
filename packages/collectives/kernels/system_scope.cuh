// Words by which GPUs wait for each other.
#ifndef ROOFLINE_COLLECTIVES_SYSTEM_SCOPE_CUH
#define ROOFLINE_COLLECTIVES_SYSTEM_SCOPE_CUH
#include "prelude.cuh"

#ifndef __CUDA_ARCH__
extern "C" int sched_yield();
#endif

namespace {

/** *to = value, which a GPU that reads it finds after all that this thread, and those it has waited for, wrote before. */
__device__ __forceinline__ void release_to_system(uint32* to, uint32 value) {
#ifdef __CUDA_ARCH__
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
#else
  __atomic_store_n(to, value, __ATOMIC_RELEASE);
#endif
}

__device__ __forceinline__ uint32 acquire_from_system(const uint32* from) {
#ifdef __CUDA_ARCH__
  uint32 value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
#else
  // The rank that is waited for may need this core.
  sched_yield();
  return __atomic_load_n(from, __ATOMIC_ACQUIRE);
#endif
}

}  // namespace

#endif
