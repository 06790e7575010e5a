// What kernels on the host share, compiled once: the scheduler of their threads.
#include "cuda-on-host.hpp"

#include <setjmp.h>
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

constexpr size_t kStackBytes = 128 * 1024;

/** A stack that runs the same thread of one block after another: to make its context anew takes calls of the system. */
struct Fiber {
  ucontext_t entry;
  jmp_buf resume;
  const std::unique_ptr<char[]> stack{new char[kStackBytes]};
  unsigned thread = 0;
  /** Whether `resume` goes on in it: behind a launch that failed it begins anew. */
  bool isEntered = false;
  bool finished = false;
  Barrier* barrier = nullptr;
  unsigned long awaited = 0;

  bool is_blocked() const { return barrier && barrier->generation == awaited; }
};

/** Kept from launch to launch; those of the launch at hand are its first `threadCount`. */
std::vector<std::unique_ptr<Fiber>> fibers;
unsigned threadCount = 0;

std::vector<Barrier> warps;
/** By thread of a block; two each, as a fast lane may be one call ahead. */
Passed passed[2][1024];
Barrier blockBarrier;
jmp_buf scheduler;
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

/** Ends the launch at hand. */
[[noreturn]] void fail(int result) {
  failure = result;
  _longjmp(scheduler, 1);
}

void yield() {
  if (!_setjmp(current->resume)) _longjmp(scheduler, 1);
}

void wait(Barrier& barrier) {
  current->awaited = barrier.generation;
  barrier.arrived++;
  barrier.release_if_complete();
  current->barrier = &barrier;
  while (current->is_blocked()) yield();
  current->barrier = nullptr;
}

Barrier& own_warp() { return warps[current->thread / 32]; }

void (*body)() = nullptr;

void enter() {
  for (;;) {
    body();
    current->finished = true;
    for (Barrier* barrier : {&blockBarrier, &own_warp()}) {
      barrier->live--;
      if (barrier->live > 0) barrier->release_if_complete();
    }
    yield();
  }
}

void resume(Fiber& fiber) {
  current = &fiber;
  currentThread = fiber.thread;
  if (_setjmp(scheduler)) return;
  if (fiber.isEntered) _longjmp(fiber.resume, 1);
  fiber.isEntered = true;
  getcontext(&fiber.entry);
  fiber.entry.uc_stack.ss_sp = fiber.stack.get();
  fiber.entry.uc_stack.ss_size = kStackBytes;
  fiber.entry.uc_link = nullptr;
  makecontext(&fiber.entry, enter, 0);
  setcontext(&fiber.entry);
}

/** Runs the threads of a warp until each has returned or waits for the block; false if none could go on. */
bool run_warp(unsigned warp) {
  const unsigned first = warp * 32, end = std::min(first + 32, threadCount);
  bool ran = false;
  for (bool running = true; running;) {
    running = false;
    for (unsigned i = first; i < end; i++) {
      if (fibers[i]->finished || fibers[i]->is_blocked()) continue;
      resume(*fibers[i]);
      if (failure) return false;
      running = ran = true;
    }
  }
  return ran;
}

void run_block() {
  blockBarrier = {threadCount};
  warps.assign((threadCount + 31) / 32, {});
  for (unsigned i = 0; i < threadCount; i++) {
    Fiber& fiber = *fibers[i];
    fiber.thread = i;
    fiber.finished = false;
    fiber.barrier = nullptr;
    warps[i / 32].live++;
  }
  const auto has_finished = [](const auto& fiber) { return fiber->finished; };
  while (!std::all_of(fibers.begin(), fibers.begin() + threadCount, has_finished)) {
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
  std::memcpy(slots[current->thread].bytes, value, bytes);
  wait(own_warp());
  return &slots[current->thread / 32 * 32];
}

char* dynamic_shared() { return dynamicShared.start(); }

int run_grid(void (*call)(), dim3_ size, unsigned threads, unsigned sharedBytes, unsigned seed) {
  const TrapHandlers handlers;
  body = call;
  grid = size;
  blockSize = {threads, 1, 1};
  failure = 0;
  randomState = seed | 1u;
  dynamicShared.bytes = sharedBytes;
  threadCount = threads;
  while (fibers.size() < threads) fibers.push_back(std::make_unique<Fiber>());
  const uint64_t count = static_cast<uint64_t>(size.x) * size.y * size.z;
  const uint64_t first = random_below(count < 1u << 31 ? count : 1u << 31);
  for (uint64_t i = 0; i < count && !failure; i++) {
    const uint64_t at = (first + i) % count;
    block = {static_cast<unsigned>(at % size.x), static_cast<unsigned>(at / size.x % size.y),
             static_cast<unsigned>(at / size.x / size.y)};
    std::memset(dynamicShared.start(), 0xff, sharedBytes);
    run_block();
  }
  if (failure) for (const auto& fiber : fibers) fiber->isEntered = false;
  return failure;
}

}  // namespace emulator
