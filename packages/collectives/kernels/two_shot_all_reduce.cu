// kernel  two_shot_all_reduce(ranks, rank, size, vectors, scale, epochs, ended)
//   ranks: where this process reaches each rank's values and arrivals
// Each rank adds up its part of all ranks' values, times `scale`, and writes the result to all of them (the two-shot
// all-reduce of symmetric memory): every value crosses the link once each way, and the sum is the same on all ranks,
// in the order of ranks.
//
// grid (a few blocks, the same in every launch, 1, 1), block (kThreads, 1, 1)
// Bound by the link, which few multiprocessors fill: the others are for what runs beside it. Block b of a rank waits
// for the blocks b of the others alone, so that they need not all run at once.
#include "system_scope.cuh"

namespace {

constexpr int kThreads = 512;
constexpr int kMaxRanks = 8;
// Vectors of each rank that a thread loads before it uses the first: those under way must cover the link's latency.
constexpr int kInFlight = 8;
// How often a wait looks for its rank between two looks at the host's memory.
constexpr int kLooks = 64;

struct Ranks {
  float4* values[kMaxRanks];
  // By block and rank: how often that rank has come there.
  uint32* arrivals[kMaxRanks];
};

struct Barrier {
  const Ranks& ranks;
  int rank;
  int size;
  // Pinned memory of the host, which is not 0 once this rank's group has ended: nobody else will come.
  const uint32* ended;
  uint32 epoch;

  // All threads of the block come, on all ranks; what those wrote before can be read after. False where the group has ended:
  // other ranks' memory may be in use for something else.
  __device__ bool wait() {
    __shared__ bool isOver;
    epoch++;
    if (threadIdx.x == 0) isOver = false;
    __syncthreads();
    if (threadIdx.x < size) {
      const int peer = threadIdx.x;
      release_to_system(ranks.arrivals[peer] + blockIdx.x * kMaxRanks + rank, epoch);
      const uint32* const arrival = ranks.arrivals[rank] + blockIdx.x * kMaxRanks + peer;
      for (int looks = 1; (int32)(acquire_from_system(arrival) - epoch) < 0; looks++)
        if (looks % kLooks == 0 && acquire_from_system(ended) != 0) {
          isOver = true;
          break;
        }
    }
    __syncthreads();
    return !isOver;
  }
};

__device__ __forceinline__ void add(float4& sum, const float4& x) {
  sum.x += x.x;
  sum.y += x.y;
  sum.z += x.z;
  sum.w += x.w;
}

// Of `count` vectors from `first` on, `step` apart.
template <int count>
__device__ __forceinline__ void reduceVectors(const Ranks& ranks, int size, int64 first, int64 step, float scale) {
  float4 sums[count];
#pragma unroll
  for (int k = 0; k < count; k++) sums[k] = ranks.values[0][first + k * step];
  for (int peer = 1; peer < size; peer++) {
    float4 loaded[count];
#pragma unroll
    for (int k = 0; k < count; k++) loaded[k] = ranks.values[peer][first + k * step];
#pragma unroll
    for (int k = 0; k < count; k++) add(sums[k], loaded[k]);
  }
#pragma unroll
  for (int k = 0; k < count; k++) sums[k] = {sums[k].x * scale, sums[k].y * scale, sums[k].z * scale, sums[k].w * scale};
  for (int peer = 0; peer < size; peer++) {
#pragma unroll
    for (int k = 0; k < count; k++) ranks.values[peer][first + k * step] = sums[k];
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
    two_shot_all_reduce(const __grid_constant__ Ranks ranks, int rank, int size, long long vectors, float scale,
                        uint32* epochs, const uint32* ended) {
  Barrier barrier{ranks, rank, size, ended, epochs[blockIdx.x]};
  if (!barrier.wait()) return;
  const int64 part = (vectors + size - 1) / size;
  const int64 end = min((int64)vectors, (rank + 1) * part);
  const int64 step = (int64)gridDim.x * kThreads;
  int64 i = rank * part + blockIdx.x * kThreads + threadIdx.x;
  for (; i + (kInFlight - 1) * step < end; i += kInFlight * step) reduceVectors<kInFlight>(ranks, size, i, step, scale);
  for (; i < end; i += step) reduceVectors<1>(ranks, size, i, step, scale);
  if (barrier.wait() && threadIdx.x == 0) epochs[blockIdx.x] = barrier.epoch;
}
