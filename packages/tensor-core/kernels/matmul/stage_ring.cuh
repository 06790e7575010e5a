// The ring of stages that one warpgroup of matmul_split_half.cu fills with boxes of both operands, for the others to multiply.
#ifndef ROOFLINE_STAGE_RING_CUH
#define ROOFLINE_STAGE_RING_CUH

#include "hopper.cuh"
#include "stream_k.cuh"
#include "tile_shape.cuh"

namespace {

/** Position in the ring of stages. */
struct Ring {
  unsigned base;  // shared address of the first stage
  int turn = 0;   // counts stages, over two rounds of the ring

  __device__ __forceinline__ explicit Ring(unsigned base) : base(base) {}
  __device__ __forceinline__ unsigned parity() const { return turn >= STAGES; }
  __device__ __forceinline__ int stage() const { return turn >= STAGES ? turn - STAGES : turn; }
  __device__ __forceinline__ unsigned a() const { return base + stage() * kStageBytes; }
  __device__ __forceinline__ unsigned b() const { return a() + 2 * kPlaneBytesA; }
  __device__ __forceinline__ unsigned filled() const { return base + STAGES * kStageBytes + 8 * stage(); }
  __device__ __forceinline__ unsigned emptied() const { return filled() + 8 * STAGES; }
  __device__ __forceinline__ void advance() {
    if (++turn == 2 * STAGES) turn = 0;
  }
};

__device__ __forceinline__ void fill_stage(const MatmulParams& p, const Ring& ring, const Tile& tile, int k) {
  const int batchA = tile.batch * p.batchStepA, batchB = tile.batch * p.batchStepB;
#pragma unroll
  for (int box = 0; box < 2 * kConsumers; box++) {
    const int m = tile.row + box % kConsumers * 64;
    copy_box(p.a, ring.a() + box * kBoxBytes, ring.filled(), TRANS_A ? m : k, TRANS_A ? k : m, box / kConsumers,
             batchA);
  }
#pragma unroll
  for (int box = 0; box < 2 * kColumnBlocks; box++) {
    const int n = tile.column + box % kColumnBlocks * 64;
    copy_box(p.b, ring.b() + box * kBoxBytes, ring.filled(), TRANS_B ? k : n, TRANS_B ? n : k, box / kColumnBlocks,
             batchB);
  }
}

__device__ __forceinline__ void produce(const MatmulParams& p, Ring ring) {
  Schedule schedule(p);
  Segment segment;
  while (schedule.take(segment)) {
    const Tile tile(p, segment.tile);
    for (int block = segment.kBegin; block < segment.kEnd; block++) {
      barrier_wait(ring.emptied(), ring.parity() ^ 1);
      barrier_expect(ring.filled(), kStageBytes);
      fill_stage(p, ring, tile, block * kBlock);
      ring.advance();
    }
  }
}

}  // namespace

#endif
