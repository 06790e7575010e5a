// CUDA C++ as a host compiler takes it: a kernel's threads run as fibers on one CPU thread, one block after
// another, so that tests can hold kernels against references without a GPU. Only what this package's kernels
// use is here; nothing about speed or memory ordering is.
#pragma once
#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

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

struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  unsigned thread = 0;
  bool finished = false;
  long blockPhase = 0, warpPhase = 0;
  unsigned long long slot = 0;
};

inline std::vector<Fiber> fibers;
inline ucontext_t scheduler;
inline Fiber* current = nullptr;
inline dim3_ block{}, grid{}, blockSize{};

constexpr size_t kStackBytes = 128 * 1024;

inline void yield() { swapcontext(&current->context, &scheduler); }

inline void barrier(long Fiber::*phase, size_t first, size_t last) {
  const long mine = ++(current->*phase);
  for (bool waiting = true; waiting;) {
    waiting = false;
    for (size_t i = first; i < last; i++) waiting |= !fibers[i].finished && fibers[i].*phase < mine;
    if (waiting) yield();
  }
}

inline void block_barrier() { barrier(&Fiber::blockPhase, 0, fibers.size()); }

inline void warp_barrier() {
  const size_t first = current->thread / 32 * 32;
  barrier(&Fiber::warpPhase, first, std::min<size_t>(first + 32, fibers.size()));
}

/** What `lane` of this warp passed in the same call. */
template <typename T>
T exchange(T value, unsigned lane) {
  std::memcpy(&current->slot, &value, sizeof(T));
  warp_barrier();
  T result;
  std::memcpy(&result, &fibers[current->thread / 32 * 32 + lane % 32].slot, sizeof(T));
  warp_barrier();
  return result;
}

inline void (*body)() = nullptr;

inline void enter() {
  body();
  current->finished = true;
  yield();
}

inline void run_block() {
  for (unsigned i = 0; i < fibers.size(); i++) {
    Fiber& fiber = fibers[i];
    fiber.thread = i;
    fiber.finished = false;
    fiber.blockPhase = fiber.warpPhase = 0;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, enter, 0);
  }
  for (bool running = true; running;) {
    running = false;
    for (Fiber& fiber : fibers) {
      if (fiber.finished) continue;
      current = &fiber;
      swapcontext(&scheduler, &fiber.context);
      running |= !fiber.finished;
    }
  }
}

/** Reads a packed argument, aligned as C would. */
template <typename T>
T argument(const char* packed, size_t& offset) {
  offset = (offset + alignof(T) - 1) / alignof(T) * alignof(T);
  T value;
  std::memcpy(static_cast<void*>(&value), packed + offset, sizeof(T));
  offset += sizeof(T);
  return value;
}

template <auto kernel>
struct Launch;

template <typename... P, void (*kernel)(P...)>
struct Launch<kernel> {
  static inline const char* packed = nullptr;
  static void call() {
    size_t offset = 0;
    std::tuple<P...> arguments{argument<P>(packed, offset)...};
    std::apply(kernel, arguments);
  }
  static void run(const char* arguments, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned threads) {
    packed = arguments;
    body = call;
    grid = {gridX, gridY, gridZ};
    blockSize = {threads, 1, 1};
    fibers.resize(threads);
    for (Fiber& fiber : fibers) if (!fiber.stack) fiber.stack.reset(new char[kStackBytes]);
    for (block.z = 0; block.z < gridZ; block.z++) {
      for (block.y = 0; block.y < gridY; block.y++) {
        for (block.x = 0; block.x < gridX; block.x++) run_block();
      }
    }
  }
};

}  // namespace emulator

#define threadIdx (dim3_{emulator::current->thread, 0, 0})
#define blockIdx (emulator::block)
#define blockDim (emulator::blockSize)
#define gridDim (emulator::grid)

inline void __syncthreads() { emulator::block_barrier(); }
inline void __syncwarp(unsigned = ~0u) { emulator::warp_barrier(); }

template <typename T>
T __shfl_xor_sync(unsigned, T value, int mask, int = 32) {
  return emulator::exchange(value, emulator::current->thread % 32 ^ mask);
}
template <typename T>
T __shfl_sync(unsigned, T value, int lane, int = 32) {
  return emulator::exchange(value, lane);
}
template <typename T>
T __shfl_down_sync(unsigned, T value, int distance, int = 32) {
  const unsigned lane = emulator::current->thread % 32;
  return emulator::exchange(value, lane + distance < 32 ? lane + distance : lane);
}
template <typename T>
T __shfl_up_sync(unsigned, T value, int distance, int = 32) {
  const int lane = emulator::current->thread % 32;
  return emulator::exchange(value, lane >= distance ? lane - distance : lane);
}
inline unsigned __ballot_sync(unsigned, int predicate) {
  unsigned bits = 0;
  for (unsigned lane = 0; lane < 32; lane++) bits |= (emulator::exchange(predicate, lane) ? 1u : 0u) << lane;
  return bits;
}

template <typename To, typename From>
To bits_as(From from) {
  To to;
  std::memcpy(&to, &from, sizeof(To));
  return to;
}
inline float __int_as_float(int x) { return bits_as<float>(x); }
inline float __uint_as_float(unsigned x) { return bits_as<float>(x); }
inline int __float_as_int(float x) { return bits_as<int>(x); }
inline unsigned __float_as_uint(float x) { return bits_as<unsigned>(x); }
inline double __longlong_as_double(long long x) { return bits_as<double>(x); }
inline long long __double_as_longlong(double x) { return bits_as<long long>(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned long long>(a) * b >> 32; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double a) { return std::sqrt(a); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }

using std::cos, std::exp, std::exp2, std::expm1, std::fabs, std::log, std::log1p, std::pow, std::sin, std::sqrt, std::tanh;
using std::erf, std::fma, std::fmax, std::fmin, std::isinf, std::isnan, std::max, std::min;
inline float rsqrt(float x) { return 1 / std::sqrt(x); }
inline double rsqrt(double x) { return 1 / std::sqrt(x); }
inline float rsqrtf(float x) { return rsqrt(x); }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline double normcdf(double x) { return 0.5 * std::erfc(-x * M_SQRT1_2); }
inline float normcdf(float x) { return static_cast<float>(normcdf(static_cast<double>(x))); }
