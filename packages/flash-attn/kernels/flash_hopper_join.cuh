// How the SPLITS blocks of a cluster, which share the keys of a tile of 64 queries, bring their sums together
// (flash_hopper_forward.cu): each leaves its own in its shared memory, and writes 64 / SPLITS of the rows of O from the
// shared memory of all of them. So a long sequence of few heads has work for all multiprocessors.
#ifndef ROOFLINE_FLASH_HOPPER_JOIN_CUH
#define ROOFLINE_FLASH_HOPPER_JOIN_CUH

#include "flash_hopper_forward.cuh"

#if SPLITS > 1
namespace {

__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\n barrier.cluster.wait.acquire;" ::: "memory");
}

/** The address in the shared memory of block `rank` of the cluster that `address` is in one's own. */
__device__ __forceinline__ unsigned shared_of(unsigned address, int rank) {
  unsigned mapped;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
  return mapped;
}

__device__ __forceinline__ float2 load_pair(unsigned address) {
  float2 x;
  asm volatile("ld.shared::cluster.v2.f32 {%0, %1}, [%2];" : "=f"(x.x), "=f"(x.y) : "r"(address) : "memory");
  return x;
}
__device__ __forceinline__ void store_pair(unsigned address, float x, float y) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(x), "f"(y) : "memory");
}

/** By the one warpgroup of a block, over the ring of keys and values, when nothing of it is read any more. */
struct Join {
  static constexpr int kRowsOfBlock = 64 / SPLITS;
  static constexpr int kPartialPitch = (HEAD_DIM + 8) * 4;  // bytes; rows eight banks apart
  static constexpr int kStatistics = 64 * kPartialPitch;    // [64] pairs: what was subtracted, and the sum
  static_assert(WARPGROUPS == 1, "all of a tile's queries are one warpgroup's");
  static_assert(kStatistics + 64 * 8 <= 2 * STAGES * kKeyBytes, "sums lie where keys and values lay");

  const HopperForwardParams& p;
  const SharedMemory memory;

  __device__ __forceinline__ unsigned partial(int row) const { return memory.key(0) + row * kPartialPitch; }
  __device__ __forceinline__ unsigned statistics(int row) const { return memory.key(0) + kStatistics + row * 8; }

  /** Leaves this block's sums for the others. */
  __device__ __forceinline__ void leave(const float (&output)[kOutputs], const float (&shift)[2],
                                        const float (&sum)[2]) const {
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < kOutputs; i += 2) {
      store_pair(partial(row + i / 2 % 2 * 8) + (i / 4 * 8 + lane % 4 * 2) * 4, output[i], output[i + 1]);
    }
    if (lane % 4 == 0) {
#pragma unroll
      for (int r = 0; r < 2; r++) store_pair(statistics(row + 8 * r), shift[r], sum[r]);
    }
  }

  /** Brings this block's rows together, as they are to be stored. */
  __device__ __forceinline__ void gather(const Tile& tile) const {
    constexpr int kPieces = HEAD_DIM / 8;
    const int first = blockIdx.x % SPLITS * kRowsOfBlock;
    for (int i = threadIdx.x; i < kRowsOfBlock * kPieces; i += 128) {
      const int row = first + i / kPieces, piece = i % kPieces;
      float factor[SPLITS], largest = lowest<float>(), total = 0.0f;
      float2 of[SPLITS];
#pragma unroll
      for (int s = 0; s < SPLITS; s++) {
        of[s] = load_pair(shared_of(statistics(row), s));
        largest = fmaxf(largest, of[s].x);
      }
#pragma unroll
      for (int s = 0; s < SPLITS; s++) {
        factor[s] = of[s].x == lowest<float>() ? 0.0f : fast_exp2((of[s].x - largest) * p.scaleLog2);
        total += factor[s] * of[s].y;
      }
      if (piece == 0 && tile.row + row < p.queries) {
        p.lse[static_cast<int64>(tile.headOfAll) * p.queries + tile.row + row] =
            total == 0.0f ? lowest<float>() : fmaf(largest, p.scale, __logf(total));
      }
      const float inverse = total == 0.0f ? 0.0f : 1.0f / total;
      uint32 pairs[4];
#pragma unroll
      for (int j = 0; j < 4; j++) {
        float2 x = {0.0f, 0.0f};
#pragma unroll
        for (int s = 0; s < SPLITS; s++) {
          const float2 y = load_pair(shared_of(partial(row) + piece * 32 + j * 8, s));
          x.x = fmaf(factor[s], y.x, x.x);
          x.y = fmaf(factor[s], y.y, x.y);
        }
        pairs[j] = pack_pair<ELEMENT>(x.x * inverse, x.y * inverse);
      }
      asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(
                       memory.output(0) + piece_offset<kRowsOfBlock>(row - first, piece)),
                   "r"(pairs[0]), "r"(pairs[1]), "r"(pairs[2]), "r"(pairs[3])
                   : "memory");
    }
  }

  /** Writes this block's rows, by one thread. */
  __device__ __forceinline__ void store(const Tile& tile) const {
    const int first = tile.row + blockIdx.x % SPLITS * kRowsOfBlock;
    if (first >= p.queries) return;
#pragma unroll
    for (int part = 0; part < kParts; part++) {
      store_part(p.o, memory.output(0) + part * kRowsOfBlock * kPitch, part, first, tile.head, tile.batch);
    }
    commit_stores();
  }
};

}  // namespace
#endif

#endif
