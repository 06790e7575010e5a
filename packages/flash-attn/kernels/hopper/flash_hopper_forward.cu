// FlashAttention's forward pass on Hopper's tensor cores (sm_90a), for bfloat16 and float16 with float32 sums.
//
//     O = softmax(scale · Q Kᵀ + mask) V,   lse = log Σ exp(scale · q·k + mask)
//
// A persistent block takes tiles of 64 · WARPGROUPS queries from a counter, the longest first. One thread feeds it: Q, and
// blocks of BLOCK_N keys and values, from the last that the tile sees to the first, through rings of STAGES by TMA. Each
// warpgroup has 64 of the queries. While the tensor cores add P·V of one block, it turns the scores of the next one,
// which they computed before, into weights; warpgroups take turns at issuing products (FlashAttention-3, Shah et al.
// 2024, has both), so that one's softmax overlaps with another's products. P never leaves registers.
//
// Softmax does not depend on what is subtracted from the scores. So a row's maximum is taken of its first block (and of
// masked ones), and then left as it is: later blocks need no maximum, no exchange between threads and no rescaling. The
// sum of a block's weights, needed anyway, shows when a row has outgrown it; then that warp calculates its scores again
// from Q and K, which are still in shared memory, and takes the maximum after all. A weight near a row's largest score
// is then not exactly 1, and its rounding to ELEMENT would show where it dominates its row: the sum is therefore taken
// of the rounded weights, which O is a true average by. (A sum of the weights before rounding is up to 6 % faster, but had
// up to 12 times PyTorch's error, in float16 with inputs of magnitude 60, where at most twice is the rule.)
//
// Where there are few tiles, SPLITS blocks of a cluster share the keys of each (flash_hopper_join.cuh).
//
// kernel   flash_hopper_forward(HopperForwardParams)
//   grid     (blocks, 1, 1), blocks at most tiles, and BLOCKS_PER_SM a multiprocessor; with SPLITS, SPLITS · tiles
//   block    (128 · (WARPGROUPS + 1), 1, 1)
//   dynamic shared memory, with D = HEAD_DIM rounded up to CHUNK
//            1024 + 256 · WARPGROUPS · D + 4 · STAGES · BLOCK_N · D + 512 bytes, 128 · WARPGROUPS · D less with
//            OUTPUT_OVER_QUERIES
//   target   sm_90a
// macros
//   ELEMENT      bfloat16 | float16
//   HEAD_DIM     16 | 32 | 64 | 80 | 96 | 128 | 192 | 256: the head dimension, or the next one above it
//   CHUNK        16 | 32 | 64: columns of a part of a tile
//   BLOCK_N      48 | 64 | 80 | 96 | 128: keys of a block
//   WARPGROUPS   1 to 4 that calculate
//   STAGES       of the rings of keys and of values
//   BLOCKS_PER_SM
//   CAUSAL       1: query i sees the keys j <= i + keys - queries
//   SPLITS       1, or 2 | 4 | 8: so many blocks of a cluster share the keys of a tile of 64 queries (1)
//   OUTPUT_OVER_QUERIES  1: O leaves through the shared memory that Q came to (0)
//   Q_IN_REGISTERS   1: Q is read from shared memory once a tile
//   CONSUMER_REGISTERS, PRODUCER_REGISTERS   a thread's
//   EXACT_MAXIMUM    1: every block takes the maximum (0)
//   SUM_ROUNDED      1: rows are summed over rounded weights (1)

#ifndef EXACT_MAXIMUM
#define EXACT_MAXIMUM 0
#endif
#ifndef SUM_ROUNDED
#define SUM_ROUNDED 1
#endif
#ifndef SPLITS
#define SPLITS 1
#endif
#ifndef OUTPUT_OVER_QUERIES
#define OUTPUT_OVER_QUERIES 0
#endif

#include "flash_hopper_consumer.cuh"

namespace {

struct Producer {
  const HopperForwardParams& p;
  const SharedMemory memory;
  Ring<STAGES> keys, values;
  unsigned queryParity = 1;

  __device__ __forceinline__ void load_keys(const Tile& tile, int keyHead, int block) {
    barrier_wait(memory.key_emptied(keys.stage), keys.parity ^ 1);
    barrier_expect(memory.key_filled(keys.stage), kKeyBytes);
    copy_tile<BLOCK_N>(p.k, memory.key(keys.stage), memory.key_filled(keys.stage), block * BLOCK_N, keyHead,
                       tile.batch);
    keys.advance();
  }

  __device__ __forceinline__ void load_values(const Tile& tile, int keyHead, int block) {
    barrier_wait(memory.value_emptied(values.stage), values.parity ^ 1);
    barrier_expect(memory.value_filled(values.stage), kKeyBytes);
    copy_tile<BLOCK_N>(p.v, memory.value(values.stage), memory.value_filled(values.stage), block * BLOCK_N,
                       keyHead, tile.batch);
    values.advance();
  }

  /** Hands a warpgroup its next tile, once it has done with the queries before. */
  __device__ __forceinline__ void announce(int warpgroup, const Tile& tile) {
    barrier_wait(memory.query_emptied(warpgroup), queryParity);
    tile.leave(memory.tile(warpgroup));
  }

  __device__ __forceinline__ void load_queries(const Tile& tile) {
#pragma unroll
    for (int w = 0; w < WARPGROUPS; w++) {
      announce(w, tile);
      barrier_expect(memory.query_filled(w), kQueryBytes);
      copy_tile<64>(p.q, memory.query(w), memory.query_filled(w), tile.row + w * 64, tile.head, tile.batch);
    }
    queryParity ^= 1;
  }

  __device__ __forceinline__ void run() {
    TileQueue queue(p);
    for (int number = queue.take(); number >= 0; number = queue.take()) {
      const Tile tile = Tile::of(p, number);
      const int keyHead = quotient(tile.head, p.headsPerKeyHead);
      const Span blocks = tile.blocks(p);
      if (blocks.end > blocks.first) load_keys(tile, keyHead, blocks.end - 1);
      load_queries(tile);
      for (int block = blocks.end - 1; block >= blocks.first; block--) {
        if (block > blocks.first) load_keys(tile, keyHead, block - 1);
        load_values(tile, keyHead, block);
      }
    }
#pragma unroll
    for (int w = 0; w < WARPGROUPS; w++) {
      announce(w, Tile::none());
      barrier_arrive(memory.query_filled(w));
    }
  }
};

/** By one thread, before any other touches the barriers. */
__device__ __forceinline__ void start_barriers(const SharedMemory& memory) {
  for (int i = 0; i < STAGES; i++) {
    barrier_init(memory.key_filled(i), 1);
    barrier_init(memory.key_emptied(i), 4 * WARPGROUPS);
    barrier_init(memory.value_filled(i), 1);
    barrier_init(memory.value_emptied(i), 4 * WARPGROUPS);
  }
  for (int i = 0; i < WARPGROUPS; i++) {
    barrier_init(memory.query_filled(i), 1);
    barrier_init(memory.query_emptied(i), OUTPUT_OVER_QUERIES ? 1 : 4);
  }
  publish_barriers();
}

}  // namespace

extern "C" __global__ void
#if SPLITS > 1
__cluster_dims__(SPLITS, 1, 1)
#endif
__launch_bounds__(kThreads, BLOCKS_PER_SM)
    flash_hopper_forward(const __grid_constant__ HopperForwardParams p) {
  extern __shared__ unsigned char shared[];
  const unsigned start = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  const SharedMemory memory{(start + 1023u) & ~1023u};
  if (threadIdx.x == 0) start_barriers(memory);
  __syncthreads();
  // The same for a whole warp, and known as such to the compiler.
  const int warpgroup = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
  if (warpgroup == WARPGROUPS) {
    give_up_registers<PRODUCER_REGISTERS>();
    if (threadIdx.x == kConsumers) Producer{p, memory}.run();
  } else {
    take_registers<CONSUMER_REGISTERS>();
    Consumer(p, memory, warpgroup).run();
  }
}
