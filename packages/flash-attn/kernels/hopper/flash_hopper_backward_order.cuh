// dQ of a tile of queries, summed in the order of the keys, so that the same inputs give the same bits.
//
// A block adds its part when all blocks of keys before its own have added theirs: `turns` counts them. Blocks take their
// tiles in the order in which they begin, lower keys first, so that the block one waits for has begun, and the first of
// those that wait never waits itself. The block of the lowest keys stores its part instead of adding it, and that of the
// highest adds what is in memory to its own and writes gradQ: nothing is zeroed before or converted afterwards.
#ifndef ROOFLINE_FLASH_HOPPER_BACKWARD_ORDER_CUH
#define ROOFLINE_FLASH_HOPPER_BACKWARD_ORDER_CUH

#include "flash_hopper_backward_tiles.cuh"

namespace {

/** Waits until so many blocks have added to a tile. What they have written is visible after it. */
__device__ __forceinline__ void wait_for_turn(const int32* turn, int number) {
  int32 now;
  do {
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(now) : "l"(turn) : "memory");
  } while (now != number);
}

__device__ __forceinline__ void end_turn(int32* turn, int number) {
  asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(turn), "r"(number + 1) : "memory");
}

/** The tile that this block takes: the next one that none has begun. */
__device__ __forceinline__ int take_ticket(const HopperBackwardParams& p, const SharedMemory& memory) {
  if (threadIdx.x == 0) {
    asm volatile("st.shared.s32 [%0], %1;" ::"r"(memory.ticket()), "r"(atomicAdd(p.turns, 1)) : "memory");
  }
  __syncthreads();
  int ticket;
  asm volatile("ld.shared.s32 %0, [%1];" : "=r"(ticket) : "r"(memory.ticket()) : "memory");
  return ticket;
}

/** One thread, which brings dQ from shared memory to where it belongs. */
struct Writer {
  const HopperBackwardParams& p;
  const SharedMemory memory;
  const KeyTile& tile;
  Ring<SUM_BUFFERS> ring;

  __device__ __forceinline__ void store_sums(float* target) const {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(target),
                 "r"(memory.sums(ring.stage)), "n"(kSumBytes)
                 : "memory");
  }

  __device__ __forceinline__ void add_sums(float* target) const {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(target),
                 "r"(memory.sums(ring.stage)), "n"(kSumBytes)
                 : "memory");
  }

  __device__ __forceinline__ void store_gradient(int head, int rowTile) const {
#pragma unroll
    for (int part = 0; part < kParts; part++) {
#pragma unroll
      for (int row = 0; row < BLOCK_M; row += 64) {
        const int query = rowTile * BLOCK_M + row;
        if (query >= p.queries) continue;
        const unsigned source = memory.sums(ring.stage) + (part * BLOCK_M + row) * kPitch;
        store_part<kTileCopies>(p.gradQMap, source, part, query, head, tile.batch);
      }
    }
  }

  __device__ __forceinline__ void bring(int head, int rowTile) {
    const int headOfAll = tile.batch * p.heads + head;
    int32* const turn = turn_of(p, headOfAll, rowTile);
    const bool isLast = tile.is_last_of(p, rowTile);
    barrier_wait(memory.sums_filled(ring.stage), ring.parity);
    if (isLast) {
      store_gradient(head, rowTile);
    } else if (tile.number == 0) {
      store_sums(sums_of(p, headOfAll, rowTile));
    } else {
      wait_for_turn(turn, tile.number);
      asm volatile("fence.proxy.async.global;" ::: "memory");
      add_sums(sums_of(p, headOfAll, rowTile));
    }
    commit_stores();
    wait_for_stores_to_read();
    barrier_arrive(memory.sums_emptied(ring.stage));
    if (!isLast) {
      wait_for_stores();
      end_turn(turn, tile.number);
    }
    ring.advance();
  }

  __device__ __forceinline__ void run() {
    const int group = p.heads / p.keyHeads;
    for (int head = tile.keyHead * group; head < (tile.keyHead + 1) * group; head++) {
      for (int rowTile = p.rowTiles - 1; rowTile >= tile.firstRowTile; rowTile--) bring(head, rowTile);
    }
    wait_for_stores();
  }
};

}  // namespace

#endif
