// FlashAttention's backward pass on Hopper's tensor cores (sm_90a), for bfloat16 and float16 with float32 sums: gradV,
// gradK, and the sums of gradQ. flash_hopper_backward_rows.cu has what goes before and after it.
//
//     P = exp(S - lse), dV = Pᵀ dO, dP = dO Vᵀ, dS = P ∘ (dP - delta), dK = scale · dSᵀ Q, dQ = scale · dS K
//
// A block has one tile of 128 keys of a head of k and v, 64 for each of two warpgroups, and goes over the tiles of BLOCK_M
// queries that see it, of every head of q that shares it. Scores and dP are calculated with keys as rows (Sᵀ = K Qᵀ), so
// that Pᵀ and dSᵀ go into dV and dK straight from registers. dSᵀ goes to shared memory, too, from where dQ = dS K takes it
// transposed. dQ of a tile of queries is a sum over blocks, in float32 and in the order of the products' fragments, so that
// memory is touched in whole sectors: either each block adds its part as soon as it has it, in no fixed order, or
// they are added in the order of the keys (flash_hopper_backward_order.cuh), which gives the same bits twice.
//
// kernel   flash_hopper_backward(HopperBackwardParams)
//   grid     (keyTiles · keyHeads · batch, 1, 1)
//   block    (384, 1, 1): two warpgroups that calculate, one thread that feeds them by TMA, and one that adds dQ in order
//   dynamic shared memory, with D = HEAD_DIM rounded up to CHUNK
//            512 · D + 4 · STAGES · BLOCK_M · D + 512 · BLOCK_M + 4 · SUM_BUFFERS · BLOCK_M · HEAD_DIM
//            + 8 · STAGES · BLOCK_M + 256 bytes
//   target   sm_90a
// macros
//   ELEMENT    bfloat16 | float16
//   HEAD_DIM   64 | 80 | 96 | 128
//   CHUNK      16 | 32 | 64: columns of a part of a tile
//   NARROW_PADDED  1: CHUNK 16 and d < HEAD_DIM
//   BLOCK_M    128, or 64 for HEAD_DIM 96 and 128: queries of a tile
//   STAGES     of the rings of queries and of gradO
//   SUM_BUFFERS  of tiles of dQ on their way to be added in order; 0: no fixed order
//   CAUSAL     1: query i sees the keys j <= i + keys - queries
//   CONSUMER_REGISTERS, PRODUCER_REGISTERS   a thread's

#include "flash_hopper_backward_consumer.cuh"

namespace {

/** Copies a tile's lseLog2 or delta, and counts its bytes at `barrier`. */
__device__ __forceinline__ void copy_rows(const float* source, unsigned target, unsigned barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(target),
               "l"(source), "n"(kRowBytes), "r"(barrier)
               : "memory");
}

struct Producer {
  const HopperBackwardParams& p;
  const SharedMemory memory;
  const KeyTile& tile;
  Ring<STAGES> ring;

  __device__ __forceinline__ void load_keys() {
    barrier_expect(memory.keys_filled(), 2 * kKeyBytes);
    copy_tile<kBlockN, kTileCopies>(p.k, memory.key(), memory.keys_filled(), tile.key, tile.keyHead, tile.batch);
    copy_tile<kBlockN, kTileCopies>(p.v, memory.value(), memory.keys_filled(), tile.key, tile.keyHead, tile.batch);
  }

  __device__ __forceinline__ void load_queries(int head, int rowTile) {
    const int row = rowTile * BLOCK_M;
    const int64 at = static_cast<int64>(tile.batch * p.heads + head) * p.rowTiles * BLOCK_M + row;
    const unsigned queries = memory.query_filled(ring.stage), gradients = memory.grad_o_filled(ring.stage);
    barrier_wait(memory.query_emptied(ring.stage), ring.parity ^ 1);
    barrier_expect(queries, kQueryBytes + kRowBytes);
    copy_tile<BLOCK_M, kTileCopies>(p.q, memory.query(ring.stage), queries, row, head, tile.batch);
    copy_rows(p.lseLog2 + at, memory.lse(ring.stage), queries);
    barrier_wait(memory.grad_o_emptied(ring.stage), ring.parity ^ 1);
    barrier_expect(gradients, kQueryBytes + kRowBytes);
    copy_tile<BLOCK_M, kTileCopies>(p.gradO, memory.grad_o(ring.stage), gradients, row, head, tile.batch);
    copy_rows(p.delta + at, memory.delta(ring.stage), gradients);
    ring.advance();
  }

  __device__ __forceinline__ void run() {
    load_keys();
    const int group = p.heads / p.keyHeads;
    for (int head = tile.keyHead * group; head < (tile.keyHead + 1) * group; head++) {
      for (int rowTile = p.rowTiles - 1; rowTile >= tile.firstRowTile; rowTile--) load_queries(head, rowTile);
    }
  }
};

/** By one thread, before any other touches the barriers. */
__device__ __forceinline__ void start_barriers(const SharedMemory& memory) {
  for (int i = 0; i < STAGES; i++) {
    barrier_init(memory.query_filled(i), 1);
    barrier_init(memory.query_emptied(i), 4 * kWarpgroups);
    barrier_init(memory.grad_o_filled(i), 1);
    barrier_init(memory.grad_o_emptied(i), 4 * kWarpgroups);
  }
  barrier_init(memory.keys_filled(), 1);
  for (int i = 0; i < SUM_BUFFERS; i++) {
    barrier_init(memory.sums_filled(i), 4 * kWarpgroups);
    barrier_init(memory.sums_emptied(i), 1);
  }
  publish_barriers();
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    flash_hopper_backward(const __grid_constant__ HopperBackwardParams p) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const SharedMemory memory{static_cast<unsigned>(__cvta_generic_to_shared(shared))};
  if (memory.base % 1024 != 0) __trap();
  if (threadIdx.x == 0) start_barriers(memory);
  __syncthreads();
  const KeyTile tile(p, kOrdered ? take_ticket(p, memory) : static_cast<int>(blockIdx.x));
  // The same for a whole warp, and known as such to the compiler.
  const int warpgroup = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
  if (warpgroup == kWarpgroups) {
    give_up_registers<PRODUCER_REGISTERS>();
    if (threadIdx.x == kConsumers) Producer{p, memory, tile}.run();
    if (kOrdered && threadIdx.x == kConsumers + 32) Writer{p, memory, tile}.run();
  } else {
    take_registers<CONSUMER_REGISTERS>();
    Consumer(p, memory, tile, warpgroup).run();
  }
}
