// What kernels on the host share, compiled once: the scheduler of their threads.
#include "cuda-on-host.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace emulator {

unsigned currentThread = 0;
dim3_ block{}, grid{}, blockSize{};

namespace {

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

/** What GCC and Clang's own setjmp keeps: the compiler saves the registers that it needs, so that this is a few instructions. */
using Place = void* [5];

constexpr size_t kStackBytes = 160 * 1024;

/**
 * A stack on which threads run, one after another, until one waits: that one keeps it until it has returned. To make its context
 * anew takes calls of the system.
 */
struct Fiber {
  /** Tops of stacks at equal places of pages would share a few lines of the cache. */
  const size_t stackBytes;
  ucontext_t entry;
  Place resume;
  const std::unique_ptr<char[]> stack{new char[kStackBytes]};
  /** Whether `resume` goes on in it: after a launch that failed it begins anew. */
  bool isEntered = false;

  explicit Fiber(size_t number) : stackBytes(kStackBytes - number % 64 * 320) {}
};

struct Thread {
  /** Null until it waits. */
  Fiber* fiber = nullptr;
  bool finished = false;
  Barrier* barrier = nullptr;
  unsigned long awaited = 0;

  bool can_run() const { return !finished && !(barrier && barrier->generation == awaited); }
};

/** Kept from launch to launch. */
std::vector<std::unique_ptr<Fiber>> fibers;
/** Those that no thread keeps; the last one's stack is in the cache. */
std::vector<Fiber*> idle;
/** Of the block at hand. */
std::vector<Thread> threads;

std::vector<Barrier> warps;
/** By thread of a block; two each, as a fast lane may be one call ahead. */
Passed passed[2][1024];
Barrier blockBarrier;
Place scheduler;
Fiber* current = nullptr;
/** The CUresult of the launch at hand; what fails leaves its fiber for good. */
int failure = 0;
unsigned randomState = 1;

/** Below `limit` (xorshift; Marsaglia 2003). */
unsigned random_below(unsigned limit) {
  randomState ^= randomState << 13;
  randomState ^= randomState >> 17;
  randomState ^= randomState << 5;
  return randomState % limit;
}

[[noreturn, gnu::noinline]] void to_scheduler() { __builtin_longjmp(scheduler, 1); }

/** Ends the launch at hand. */
[[noreturn]] void fail(int result) {
  failure = result;
  to_scheduler();
}

/** The first thread of a warp that can go on, of those after `thread` and then of the others; -1 if there is none. */
int next_of_warp(unsigned thread) {
  const unsigned first = thread / 32 * 32, lanes = std::min<unsigned>(32, threads.size() - first);
  for (unsigned i = 1; i <= lanes; i++) {
    const unsigned next = first + (thread - first + i) % lanes;
    if (threads[next].can_run()) return next;
  }
  return -1;
}

void enter();

Fiber* idle_fiber() {
  if (idle.empty()) {
    fibers.push_back(std::make_unique<Fiber>(fibers.size()));
    return fibers.back().get();
  }
  Fiber* const fiber = idle.back();
  idle.pop_back();
  return fiber;
}

/** Goes on in a thread, which may begin in a fiber of another that has returned. */
[[noreturn, gnu::noinline]] void go_to(unsigned thread) {
  currentThread = thread;
  current = threads[thread].fiber ? threads[thread].fiber : idle_fiber();
  if (current->isEntered) __builtin_longjmp(current->resume, 1);
  current->isEntered = true;
  getcontext(&current->entry);
  current->entry.uc_stack.ss_sp = current->stack.get();
  current->entry.uc_stack.ss_size = current->stackBytes;
  current->entry.uc_link = nullptr;
  makecontext(&current->entry, enter, 0);
  setcontext(&current->entry);
  __builtin_unreachable();
}

/** Leaves the fiber at hand for another thread, or where that is -1 for the scheduler; returns once something goes on in it. */
[[gnu::noinline]] void leave_for(int thread) {
  if (__builtin_setjmp(current->resume)) return;
  if (thread < 0) to_scheduler();
  go_to(thread);
}

void wait(Barrier& barrier) {
  const unsigned thread = currentThread;
  threads[thread].awaited = barrier.generation;
  barrier.arrived++;
  barrier.release_if_complete();
  threads[thread].barrier = &barrier;
  if (!threads[thread].can_run()) {
    threads[thread].fiber = current;
    leave_for(next_of_warp(thread));
  }
  threads[thread].barrier = nullptr;
}

Barrier& own_warp() { return warps[currentThread / 32]; }

void (*body)() = nullptr;

void finish_thread() {
  threads[currentThread].finished = true;
  for (Barrier* barrier : {&blockBarrier, &own_warp()}) {
    barrier->live--;
    if (barrier->live > 0) barrier->release_if_complete();
  }
}

void enter() {
  for (;;) {
    body();
    finish_thread();
    const int next = next_of_warp(currentThread);
    if (next >= 0 && !threads[next].fiber) {
      currentThread = next;
      continue;
    }
    idle.push_back(current);
    leave_for(next);
  }
}

/** Runs the threads of a warp until each has returned or waits for the block; false if none could go on. */
bool run_warp(unsigned warp) {
  // From the last one on, which the first one follows.
  const unsigned last = std::min<unsigned>(32 * warp + 32, threads.size()) - 1;
  const int first = next_of_warp(last);
  if (first < 0) return false;
  if (!__builtin_setjmp(scheduler)) go_to(first);
  return true;
}

void run_block(unsigned threadCount) {
  blockBarrier = {threadCount};
  warps.assign((threadCount + 31) / 32, {});
  threads.assign(threadCount, {});
  for (unsigned i = 0; i < threadCount; i++) warps[i / 32].live++;
  while (blockBarrier.live > 0) {
    const unsigned warpCount = warps.size(), start = random_below(warpCount);
    bool ran = false;
    for (unsigned i = 0; i < warpCount && !failure; i++) ran |= run_warp((start + i) % warpCount);
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

DynamicShared dynamicShared;

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

}  // namespace

void wait_for_warp() { wait(own_warp()); }

void sync_block(int line) {
  if (blockBarrier.arrived == 0) blockBarrier.line = line;
  if (blockBarrier.line != line) fail(kLaunchFailed);
  wait(blockBarrier);
}

const Passed* pass_bytes(const void* value, size_t bytes) {
  Passed* const slots = passed[own_warp().generation % 2];
  std::memcpy(slots[currentThread].bytes, value, bytes);
  wait(own_warp());
  return &slots[currentThread / 32 * 32];
}

char* dynamic_shared() { return dynamicShared.start(); }

int run_grid(void (*call)(), dim3_ size, unsigned threadCount, unsigned sharedBytes, unsigned seed) {
  const TrapHandlers handlers;
  body = call;
  grid = size;
  blockSize = {threadCount, 1, 1};
  failure = 0;
  randomState = seed | 1u;
  dynamicShared.bytes = sharedBytes;
  const uint64_t count = static_cast<uint64_t>(size.x) * size.y * size.z;
  const uint64_t first = random_below(count < 1u << 31 ? count : 1u << 31);
  for (uint64_t i = 0; i < count && !failure; i++) {
    const uint64_t at = (first + i) % count;
    block = {static_cast<unsigned>(at % size.x), static_cast<unsigned>(at / size.x % size.y),
             static_cast<unsigned>(at / size.x / size.y)};
    std::memset(dynamicShared.start(), 0xff, sharedBytes);
    run_block(threadCount);
  }
  if (failure) {
    idle.clear();
    for (const auto& fiber : fibers) {
      fiber->isEntered = false;
      idle.push_back(fiber.get());
    }
  }
  return failure;
}

}  // namespace emulator
