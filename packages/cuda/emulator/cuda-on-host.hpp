// CUDA C++ as a host compiler takes it: a kernel's threads run as fibers on one CPU thread, one block after
// another, so that tests can hold kernels against references without a GPU. Which block and which warp goes first is
// drawn at random, and a warp runs as far as it can, so that a missing barrier shows. Only what this package's kernels
// use is here. What all of them share is in cuda-on-host.cpp. Each kernel reads this file anew, so it includes nothing: the
// host's headers take longer than most kernels do.
#pragma once
#include "math-on-host.hpp"

using size_t = decltype(sizeof(0));

#define __device__
#define __host__
#define __global__
#define __forceinline__ inline
#define __shared__ static
#define __grid_constant__
#define __launch_bounds__(...)
#define __restrict__

struct dim3_ {
  unsigned x, y, z;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};

namespace emulator {

/** The thread, its block and the grid, while a kernel runs. */
extern unsigned currentThread;
extern dim3_ block, grid, blockSize;

/** Runs `call` as each thread of a grid; gives a CUresult. */
int run_grid(void (*call)(), dim3_ size, unsigned threads, unsigned sharedBytes, unsigned seed);

/** __syncthreads() of one line: threads of a block that wait at different ones would wait for ever, or worse. */
void sync_block(int line);
void wait_for_warp();
char* dynamic_shared();

/** What a lane passes to its warp at once. */
struct alignas(8) Passed {
  char bytes[32];
};

/** Gives what the lanes of this warp passed in the same call, until this lane passes something again. */
const Passed* pass_bytes(const void* value, size_t bytes);

/** A value of each lane of a warp. */
template <typename T>
struct WarpValues {
  const Passed* passed;
  T operator[](unsigned lane) const {
    T value;
    __builtin_memcpy(&value, passed[lane % 32].bytes, sizeof(T));
    return value;
  }
};

template <typename T>
WarpValues<T> pass_to_warp(const T& value) {
  static_assert(sizeof(T) <= sizeof(Passed));
  return {pass_bytes(&value, sizeof(T))};
}

template <typename T>
constexpr size_t aligned(size_t offset) {
  return (offset + alignof(T) - 1) / alignof(T) * alignof(T);
}

/** Reads a packed argument. */
template <typename T>
T argument(const char* packed, size_t& offset) {
  T value;
  offset = aligned<T>(offset);
  __builtin_memcpy(static_cast<void*>(&value), packed + offset, sizeof(T));
  offset += sizeof(T);
  return value;
}

/** Packs the argument at an address that need not be aligned. */
template <typename T>
void pack(char* packed, size_t& offset, const char* address) {
  offset = aligned<T>(offset);
  __builtin_memcpy(packed + offset, address, sizeof(T));
  offset += sizeof(T);
}

template <auto kernel>
struct Launch;

/** A launch's arguments lie as C would pack them. No tuple of the library's: it would take most of a kernel's compilation. */
template <typename... P, void (*kernel)(P...)>
struct Launch<kernel> {
  /** Its braces read arguments in their order. */
  struct Call {
    Call(P... arguments) { kernel(arguments...); }
  };
  static inline const char* packedArguments = nullptr;

  static constexpr size_t byte_length() {
    size_t offset = 0;
    ((offset = aligned<P>(offset) + sizeof(P)), ...);
    return offset;
  }

  /** The arguments of a launch, for `run`; either packed already, or each by its address. */
  static void* capture(const char* packed, const char* const* pointers) {
    if (!pointers) return copy(packed);
    char* const captured = static_cast<char*>(__builtin_malloc(byte_length()));
    size_t offset = 0;
    (pack<P>(captured, offset, *pointers++), ...);
    return captured;
  }

  /** The same arguments once more: a graph runs its launches again and again. */
  static void* copy(const void* captured) { return __builtin_memcpy(__builtin_malloc(byte_length()), captured, byte_length()); }

  static void call() {
    size_t offset = 0;
    Call{argument<P>(packedArguments, offset)...};
  }

  /** Gives a CUresult. */
  static int run(void* captured, dim3_ size, unsigned threads, unsigned sharedBytes, unsigned seed) {
    packedArguments = static_cast<const char*>(captured);
    const int result = run_grid(call, size, threads, sharedBytes, seed);
    __builtin_free(captured);
    return result;
  }
};

}  // namespace emulator

#define threadIdx (dim3_{emulator::currentThread, 0, 0})
#define blockIdx (emulator::block)
#define blockDim (emulator::blockSize)
#define gridDim (emulator::grid)

#define __syncthreads() emulator::sync_block(__LINE__)
inline void __syncwarp(unsigned = ~0u) { emulator::wait_for_warp(); }

template <typename T>
T __shfl_xor_sync(unsigned, T value, int mask, int = 32) {
  return emulator::pass_to_warp(value)[emulator::currentThread % 32 ^ mask];
}
template <typename T>
T __shfl_sync(unsigned, T value, int lane, int = 32) {
  return emulator::pass_to_warp(value)[lane];
}
template <typename T>
T __shfl_down_sync(unsigned, T value, int distance, int = 32) {
  const unsigned lane = emulator::currentThread % 32;
  return emulator::pass_to_warp(value)[lane + distance < 32 ? lane + distance : lane];
}
template <typename T>
T __shfl_up_sync(unsigned, T value, int distance, int = 32) {
  const int lane = emulator::currentThread % 32;
  return emulator::pass_to_warp(value)[lane >= distance ? lane - distance : lane];
}
inline unsigned __ballot_sync(unsigned, int predicate) {
  const auto predicates = emulator::pass_to_warp(predicate);
  unsigned bits = 0;
  for (unsigned lane = 0; lane < 32; lane++) bits |= (predicates[lane] ? 1u : 0u) << lane;
  return bits;
}

// Threads run one after another, so nothing comes between.
inline unsigned atomicAdd(unsigned* address, unsigned value) {
  const unsigned before = *address;
  *address += value;
  return before;
}
inline int atomicAdd(int* address, int value) {
  const int before = *address;
  *address += value;
  return before;
}
inline void __threadfence() {}
inline unsigned atomicMax(unsigned* address, unsigned value) {
  const unsigned before = *address;
  if (before < value) *address = value;
  return before;
}
inline unsigned atomicMin(unsigned* address, unsigned value) {
  const unsigned before = *address;
  if (value < before) *address = value;
  return before;
}

template <typename T, typename Join>
T reduce_over_warp(T value, Join join) {
  for (unsigned mask = 1; mask < 32; mask *= 2) value = join(value, __shfl_xor_sync(~0u, value, mask));
  return value;
}
inline unsigned __reduce_max_sync(unsigned, unsigned value) {
  return reduce_over_warp(value, [](unsigned a, unsigned b) { return a < b ? b : a; });
}
inline unsigned __reduce_min_sync(unsigned, unsigned value) {
  return reduce_over_warp(value, [](unsigned a, unsigned b) { return a < b ? a : b; });
}
inline unsigned __reduce_add_sync(unsigned, unsigned value) {
  return reduce_over_warp(value, [](unsigned a, unsigned b) { return a + b; });
}
inline unsigned __reduce_or_sync(unsigned, unsigned value) {
  return reduce_over_warp(value, [](unsigned a, unsigned b) { return a | b; });
}
inline bool __any_sync(unsigned mask, bool predicate) {
  return __reduce_or_sync(mask, predicate) != 0;
}

template <typename To, typename From>
To bits_as(From from) {
  To to;
  __builtin_memcpy(&to, &from, sizeof(To));
  return to;
}
inline float __int_as_float(int x) { return bits_as<float>(x); }
inline float __uint_as_float(unsigned x) { return bits_as<float>(x); }
inline int __float_as_int(float x) { return bits_as<int>(x); }
inline unsigned __float_as_uint(float x) { return bits_as<unsigned>(x); }
inline double __longlong_as_double(long long x) { return bits_as<double>(x); }
inline long long __double_as_longlong(double x) { return bits_as<long long>(x); }
template <typename T>
T __ldcs(const T* address) {
  return *address;
}
template <typename T>
T __ldg(const T* address) {
  return *address;
}
template <typename T>
void __stcs(T* address, T value) {
  *address = value;
}
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned long long>(a) * b >> 32; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double a) { return sqrt(a); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }

template <typename T>
constexpr const T& max(const T& a, const T& b) {
  return a < b ? b : a;
}
template <typename T>
constexpr const T& min(const T& a, const T& b) {
  return b < a ? b : a;
}
inline float rsqrt(float x) { return 1 / sqrt(x); }
inline double rsqrt(double x) { return 1 / sqrt(x); }
inline float rsqrtf(float x) { return rsqrt(x); }
inline float __expf(float x) { return exp(x); }
inline float __logf(float x) { return log(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline double normcdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }
inline float normcdf(float x) { return static_cast<float>(normcdf(static_cast<double>(x))); }
