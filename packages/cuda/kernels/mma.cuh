// What compute capability 8.0 has and C++ does not: products of tensor cores by a warp (mma.sync), loads of their operands
// from shared memory (ldmatrix), and copies to shared memory in the background (cp.async). Each function is one
// instruction of the PTX manual. emulator/mma.cuh is the equivalent in C++.
//
// A warp multiplies A[16][k] · B[k][8] into C[16][8], with k 16 in 16-bit types and 8 in TF32. With g = lane / 4 and
// t = lane % 4, a lane holds
//     C  rows g, g, g + 8, g + 8 at columns 2t, 2t + 1, 2t, 2t + 1
//     A  32-bit words of rows g, g + 8, g, g + 8: words t, t, t + 4, t + 4 of their rows
//     B  words t and t + 4 of column g
// where a word is two 16-bit numbers, consecutive in k, or one TF32.
#ifndef ROOFLINE_MMA_CUH
#define ROOFLINE_MMA_CUH

#include "exp2.cuh"
#include "prelude.cuh"

namespace {

__device__ __forceinline__ unsigned shared_address(const void* address) {
  return static_cast<unsigned>(__cvta_generic_to_shared(address));
}

/**
 * Loads four matrices of 8 rows of 16 bytes; lane 8i + j passes the (aligned) address of row j of matrix i. Word i is this
 * lane's part of matrix i: word lane % 4 of row lane / 4.
 */
__device__ __forceinline__ void load_matrices(uint32 (&words)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(shared_address(row))
               : "memory");
}

/** Likewise for 8×8 matrices of 16-bit numbers, each transposed. */
__device__ __forceinline__ void load_matrices_transposed(uint32 (&words)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(shared_address(row))
               : "memory");
}

/** Copies 16 bytes (both addresses aligned) asynchronously, or writes zeros where the source does not exist. */
__device__ __forceinline__ void copy_in_background(void* shared, const void* source, bool exists) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)), "l"(source),
               "r"(exists ? 16 : 0)
               : "memory");
}

/** All copies that this thread began since the last call become one group. */
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/** Waits until at most kPending groups of this thread are in flight. */
template <int kPending>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

/** The instruction for a type; `addend` names the operands that the product is added to. */
#define ROOFLINE_MULTIPLY(shape, type, addend) \
  "mma.sync.aligned." shape ".row.col.f32." type "." type ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, " addend ";"
#define ROOFLINE_OPERANDS(a, b) "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])

#define ROOFLINE_DEFINE_MULTIPLY(T, shape, type)                                                                          \
  template <>                                                                                                          \
  __device__ __forceinline__ void multiply<T>(float (&sums)[4], const uint32 (&a)[4], const uint32 (&b)[2]) {          \
    asm volatile(ROOFLINE_MULTIPLY(shape, type, "{%0, %1, %2, %3}")                                                    \
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])                                          \
                 : ROOFLINE_OPERANDS(a, b));                                                                           \
  }                                                                                                                    \
  template <>                                                                                                          \
  __device__ __forceinline__ void multiply_anew<T>(float (&sums)[4], const uint32 (&a)[4], const uint32 (&b)[2]) {     \
    asm volatile(ROOFLINE_MULTIPLY(shape, type, "{%10, %10, %10, %10}")                                                \
                 : "=f"(sums[0]), "=f"(sums[1]), "=f"(sums[2]), "=f"(sums[3])                                          \
                 : ROOFLINE_OPERANDS(a, b), "f"(0.0f));                                                                \
  }

/** sums += A · B. A float is read as TF32: its lowest 13 bits are ignored. */
template <typename T>
__device__ __forceinline__ void multiply(float (&sums)[4], const uint32 (&a)[4], const uint32 (&b)[2]);
/** sums = A · B. */
template <typename T>
__device__ __forceinline__ void multiply_anew(float (&sums)[4], const uint32 (&a)[4], const uint32 (&b)[2]);

ROOFLINE_DEFINE_MULTIPLY(bfloat16, "m16n8k16", "bf16")
ROOFLINE_DEFINE_MULTIPLY(float16, "m16n8k16", "f16")
ROOFLINE_DEFINE_MULTIPLY(float, "m16n8k8", "tf32")

#undef ROOFLINE_DEFINE_MULTIPLY
#undef ROOFLINE_OPERANDS
#undef ROOFLINE_MULTIPLY

/** The nearest TF32, as a float's bits. */
__device__ __forceinline__ uint32 to_tf32(float x) {
  uint32 bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return bits;
}

// Compute capability 9.0 and later add four floats to memory at once.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
constexpr bool kAddsVectors = true;
#else
constexpr bool kAddsVectors = false;
#endif

/** memory += x, atomically: many threads add there. */
__device__ __forceinline__ void add_to_memory(float* memory, float x) {
  asm volatile("red.global.add.f32 [%0], %1;" ::"l"(memory), "f"(x) : "memory");
}

/** Likewise to four floats, aligned to 16 bytes; only where kAddsVectors. */
__device__ __forceinline__ void add_to_memory(float* memory, const Vector<float, 4>& x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(memory), "f"(x.values[0]), "f"(x.values[1]),
               "f"(x.values[2]), "f"(x.values[3])
               : "memory");
#endif
}

/** Reads what another block has written before it released it. */
__device__ __forceinline__ int32 read_acquired(const int32* memory) {
  int32 value;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(memory) : "memory");
  return value;
}

/** Writes after all that this thread has written, or seen written, before. */
__device__ __forceinline__ void write_released(int32* memory, int32 value) {
  asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(memory), "r"(value) : "memory");
}

}  // namespace

#endif
