// CUDA C++ as a host compiler takes it: a kernel's threads run as fibers on one CPU thread, one block after
// another, so that tests can hold kernels against references without a GPU. Which block and which warp goes first is
// drawn at random, and a warp runs as far as it can, so that a missing barrier shows. Only what this package's kernels
// use is here; nothing about speed is.
#pragma once
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
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

// What a launch that fails gives: CUDA_ERROR_ILLEGAL_ADDRESS and so on, from cuda.h.
constexpr int kIllegalAddress = 700, kMisalignedAddress = 716, kLaunchFailed = 719;

/** Where threads wait for one another: a block, or a warp. Threads that have returned are not waited for. */
struct Barrier {
  unsigned live = 0, arrived = 0;
  unsigned long generation = 0;
  /** The line of the first one to arrive. */
  int line = 0;

  void release_if_complete() {
    if (arrived < live) return;
    arrived = 0;
    generation++;
  }
};

struct Fiber {
  ucontext_t entry;
  jmp_buf resume;
  std::unique_ptr<char[]> stack;
  unsigned thread = 0;
  bool started = false, finished = false;
  Barrier* barrier = nullptr;
  unsigned long awaited = 0;
  unsigned long long slots[2] = {0, 0};

  bool is_blocked() const { return barrier && barrier->generation == awaited; }
};

inline std::vector<Fiber> fibers;
inline std::vector<Barrier> warps;
inline Barrier blockBarrier;
inline jmp_buf scheduler;
inline Fiber* current = nullptr;
inline dim3_ block{}, grid{}, blockSize{};
/** The CUresult of the launch at hand; what fails leaves its fiber for good. */
inline int failure = 0;
inline unsigned randomState = 1;

/** Below `limit` (xorshift; Marsaglia 2003). */
inline unsigned random_below(unsigned limit) {
  randomState ^= randomState << 13;
  randomState ^= randomState >> 17;
  randomState ^= randomState << 5;
  return randomState % limit;
}

constexpr size_t kStackBytes = 128 * 1024;

/** Ends the launch at hand. */
[[noreturn]] inline void fail(int result) {
  failure = result;
  _longjmp(scheduler, 1);
}

inline void yield() {
  if (!_setjmp(current->resume)) _longjmp(scheduler, 1);
}

inline void wait(Barrier& barrier) {
  current->awaited = barrier.generation;
  barrier.arrived++;
  barrier.release_if_complete();
  current->barrier = &barrier;
  while (current->is_blocked()) yield();
  current->barrier = nullptr;
}

/** __syncthreads() of one line: threads of a block that wait at different ones would wait for ever, or worse. */
inline void sync_block(int line) {
  if (blockBarrier.arrived == 0) blockBarrier.line = line;
  if (blockBarrier.line != line) fail(kLaunchFailed);
  wait(blockBarrier);
}

inline Barrier& own_warp() { return warps[current->thread / 32]; }

/** What `lane` of this warp passed in the same call. Two slots, as a fast lane may be one call ahead. */
template <typename T>
T exchange(T value, unsigned lane) {
  const unsigned long parity = own_warp().generation % 2;
  std::memcpy(&current->slots[parity], &value, sizeof(T));
  wait(own_warp());
  T result;
  std::memcpy(&result, &fibers[current->thread / 32 * 32 + lane % 32].slots[parity], sizeof(T));
  return result;
}

inline void (*body)() = nullptr;

inline void enter() {
  body();
  current->finished = true;
  for (Barrier* barrier : {&blockBarrier, &own_warp()}) {
    barrier->live--;
    if (barrier->live > 0) barrier->release_if_complete();
  }
  _longjmp(scheduler, 1);
}

inline void resume(Fiber& fiber) {
  current = &fiber;
  if (_setjmp(scheduler)) return;
  if (fiber.started) _longjmp(fiber.resume, 1);
  fiber.started = true;
  setcontext(&fiber.entry);
}

/** Runs the threads of a warp until each has returned or waits for the block; false if none could go on. */
inline bool run_warp(unsigned warp) {
  const unsigned first = warp * 32, end = std::min<unsigned>(first + 32, fibers.size());
  bool ran = false;
  for (bool running = true; running;) {
    running = false;
    for (unsigned i = first; i < end; i++) {
      if (fibers[i].finished || fibers[i].is_blocked()) continue;
      resume(fibers[i]);
      if (failure) return false;
      running = ran = true;
    }
  }
  return ran;
}

inline void run_block() {
  const unsigned count = fibers.size();
  blockBarrier = {count};
  warps.assign((count + 31) / 32, {});
  for (unsigned i = 0; i < count; i++) {
    Fiber& fiber = fibers[i];
    fiber.thread = i;
    fiber.started = fiber.finished = false;
    fiber.barrier = nullptr;
    warps[i / 32].live++;
    getcontext(&fiber.entry);
    fiber.entry.uc_stack.ss_sp = fiber.stack.get();
    fiber.entry.uc_stack.ss_size = kStackBytes;
    fiber.entry.uc_link = nullptr;
    makecontext(&fiber.entry, enter, 0);
  }
  const auto has_finished = [](const Fiber& fiber) { return fiber.finished; };
  while (!std::all_of(fibers.begin(), fibers.end(), has_finished)) {
    const unsigned warpCount = warps.size(), start = random_below(warpCount);
    bool ran = false;
    for (unsigned i = 0; i < warpCount; i++) ran |= run_warp((start + i) % warpCount);
    if (!ran && !failure) failure = kLaunchFailed;
    if (failure) return;
  }
}

/** Memory that ends where the last byte of a launch's dynamic shared memory does, before a page that traps. */
struct DynamicShared {
  static constexpr size_t kMostBytes = 256 * 1024, kGuardBytes = 4096;
  char* memory = static_cast<char*>(
      mmap(nullptr, kMostBytes + kGuardBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  size_t bytes = 0;

  DynamicShared() { mprotect(memory + kMostBytes, kGuardBytes, PROT_NONE); }
  char* start() const { return memory + kMostBytes - (bytes + 15) / 16 * 16; }
};

inline DynamicShared dynamicShared;

inline char* dynamic_shared() { return dynamicShared.start(); }

/** Turns a trap of a kernel's own into the result of its launch, while it lives. */
class TrapHandlers {
  static constexpr int kSignals[] = {SIGILL, SIGSEGV, SIGBUS, SIGFPE};
  struct sigaction before_[4];

  static void handle(int signal) {
    fail(signal == SIGILL ? kMisalignedAddress : signal == SIGFPE ? kLaunchFailed : kIllegalAddress);
  }

 public:
  TrapHandlers() {
    struct sigaction action {};
    action.sa_handler = handle;
    action.sa_flags = SA_NODEFER;
    for (int i = 0; i < 4; i++) sigaction(kSignals[i], &action, &before_[i]);
  }
  ~TrapHandlers() {
    for (int i = 0; i < 4; i++) sigaction(kSignals[i], &before_[i], nullptr);
  }
};

/** Reads a value from an address that need not be aligned. */
template <typename T>
T value_at(const char* address) {
  T value;
  std::memcpy(static_cast<void*>(&value), address, sizeof(T));
  return value;
}

/** Reads a packed argument, aligned as C would. */
template <typename T>
T argument(const char* packed, size_t& offset) {
  offset = (offset + alignof(T) - 1) / alignof(T) * alignof(T);
  offset += sizeof(T);
  return value_at<T>(packed + offset - sizeof(T));
}

template <auto kernel>
struct Launch;

template <typename... P, void (*kernel)(P...)>
struct Launch<kernel> {
  using Arguments = std::tuple<P...>;
  static inline Arguments* arguments = nullptr;

  /** The arguments of a launch, for `run`; either packed as C would, or each by its address. */
  static void* capture(const char* packed, const char* const* pointers) {
    size_t offset = 0, index = 0;
    return new Arguments{pointers ? value_at<P>(pointers[index++]) : argument<P>(packed, offset)...};
  }

  /** The same arguments once more: a graph runs its launches again and again. */
  static void* copy(const void* captured) { return new Arguments(*static_cast<const Arguments*>(captured)); }

  static void call() { std::apply(kernel, Arguments(*arguments)); }

  /** Gives a CUresult. */
  static int run(void* captured, dim3_ size, unsigned threads, unsigned sharedBytes, unsigned seed) {
    const std::unique_ptr<Arguments> held(arguments = static_cast<Arguments*>(captured));
    const TrapHandlers handlers;
    body = call;
    grid = size;
    blockSize = {threads, 1, 1};
    failure = 0;
    randomState = seed | 1u;
    dynamicShared.bytes = sharedBytes;
    fibers.resize(threads);
    for (Fiber& fiber : fibers) if (!fiber.stack) fiber.stack.reset(new char[kStackBytes]);
    const uint64_t count = static_cast<uint64_t>(size.x) * size.y * size.z;
    const uint64_t first = random_below(count < 1u << 31 ? count : 1u << 31);
    for (uint64_t i = 0; i < count && !failure; i++) {
      const uint64_t at = (first + i) % count;
      block = {static_cast<unsigned>(at % size.x), static_cast<unsigned>(at / size.x % size.y),
               static_cast<unsigned>(at / size.x / size.y)};
      std::memset(dynamicShared.start(), 0xff, sharedBytes);
      run_block();
    }
    return failure;
  }
};

}  // namespace emulator

#define threadIdx (dim3_{emulator::current->thread, 0, 0})
#define blockIdx (emulator::block)
#define blockDim (emulator::blockSize)
#define gridDim (emulator::grid)

#define __syncthreads() emulator::sync_block(__LINE__)
inline void __syncwarp(unsigned = ~0u) { emulator::wait(emulator::own_warp()); }

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
  std::memcpy(&to, &from, sizeof(To));
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
