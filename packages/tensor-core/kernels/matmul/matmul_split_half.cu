// float32 matrix product on Hopper's fp16 tensor cores, at float32 accuracy (Ootomo & Yokota 2022,
// "Recovering single precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak").
//
//     C[batch][m][n] = alpha · op(A)[m][k] · op(B)[k][n]
//
// split_half.cu turns each operand into fp16 planes hi and lo with powers of two 2^s: x = 2^-s·(hi + 2^-11·lo). Over
// one K block of 64, with sa the exponent of a row of A and sb that of a column of B,
//     C += 2^-(sa+sb) · [ Ahi·Bhi + 2^-11·(Ahi·Blo + Alo·Bhi) ]
// Tensor cores truncate as they accumulate, so the two bracketed terms of every K block start in fresh registers and
// join the running total by float32 multiply-adds, which round to nearest.
//
// |C - A·B| ≤ c·|A|·|B| in every element, with c no larger than that of a sum of k float32 multiply-adds (k·u, with
// u = 2^-24) from k = 64 on: the split loses at most 20 u of each K block's own sum (split_half.cuh), truncation
// at most 34 u (17 terms in each of a block's 4 steps, each cut 2 bits below float32's last at the least), and the
// promotions 2 u a K block, of 64 u that the block may take. Errors being many and small, they are far below.
// Where the two blocks hold more than their planes can express (split_half.cuh's way_of: losses that matter, Inf, NaN,
// products near overflow), the factor is zero instead, and once the other K blocks are done this one is added by
// float32 multiply-adds of the operands themselves, with IEEE's semantics, many times as slowly.
//
// kernel   matmul_split_half(MatmulParams)
//   grid     (G, 1, 1): at most one block a multiprocessor; each walks over many tiles
//   block    (128 · (BLOCK_M/64 + 1), 1, 1): a warpgroup for each 64 rows of the tile, and one that feeds them
//   dynamic shared memory   STAGES · 256 · (BLOCK_M + BLOCK_N) + 16 · STAGES + 1024 bytes
//   target   sm_90a
// macros
//   BLOCK_M 64 | 128, BLOCK_N 64 | 128: the tile.   STAGES: depth of the pipeline
//   TRANS_A 0: A is stored M×K; 1: K×M.   TRANS_B 0: B is stored K×N; 1: N×K (the weight of a Linear)
//
// Tensor maps by cuTensorMapEncodeTiled, one a split operand, the same for each of its uses (either TRANS, any tile):
//   type FLOAT16, rank 4, globalAddress = planes
//   globalDim     {columns, rows, 2, batch}                    of the stored matrix
//   globalStrides {2·pitch, 2·rows·pitch, 4·rows·pitch} bytes
//   boxDim        {64, 64, 1, 1}, elementStrides {1, 1, 1, 1}
//   interleave NONE, swizzle 128B, L2 promotion 256B, out-of-bounds fill NONE (zeros)
//
// MatmulParams, 448 bytes, 64-byte aligned. Pass it by cuLaunchKernel's kernelParams. A packed argument buffer
// must hold it at the offset that cuFuncGetParamInfo(kernel, 0) reports (48 on sm_90, not 0), for its alignment.
//   0    a                 CUtensorMap
//   128  b                 CUtensorMap
//   256  factorsA          const uint8*   [batch or 1][row blocks][column blocks][64], from split_half
//   264  factorsB          const uint8*
//   272  c                 float*         [batch] matrices m × n
//   280  partials          float*         G · BLOCK_M · BLOCK_N floats, 16-byte aligned; unused if streamTiles = 0
//   288  ready             int32*         G · BLOCK_M/64 flags, zero before the first launch; each launch leaves zeros
//   296  batchStrideC      int64          elements
//   304  m, 308 n, 312 k, 316 batch       int32, each at least 1
//   320  pitchC            int32          elements between rows of c
//   324  batchStepA        int32          1, or 0 where one A serves the whole batch
//   328  batchStepB        int32          likewise
//   332  alpha             float32
//   336  streamTiles       int32          tiles whose K blocks are distributed evenly (see Schedule)
//   340  groupM            int32          consecutive tiles of one column before the next column
//   344  sourceA           const float*   what was split, [batch or 1] matrices
//   352  sourceB           const float*
//   360  batchStrideA      int64          elements; 0 where one A serves the whole batch
//   368  batchStrideB      int64          likewise
//   376  pitchA            int32          elements between rows of sourceA
//   380  pitchB            int32          likewise
//   384  summariesA        const uint32*  [batch or 1][row blocks][column blocks], likewise
//   392  summariesB        const uint32*
//   400  (padding to 448)
// One pair of partials and ready serves one stream at a time. The same G gives the same bits every time.
// May be launched with programmatic stream serialization after split_half: it waits by itself.

#ifndef BLOCK_M
#define BLOCK_M 128
#endif
#ifndef BLOCK_N
#define BLOCK_N 128
#endif
#ifndef STAGES
#define STAGES 3
#endif
#ifndef TRANS_A
#define TRANS_A 0
#endif
#ifndef TRANS_B
#define TRANS_B 0
#endif

#include "exact_products.cuh"
#include "promotion.cuh"
#include "stage_ring.cuh"
#include "stream_k.cuh"
#include "tile_products.cuh"
#include "tile_results.cuh"

namespace {

/**
 * total = the segment's product without the K blocks that must be multiplied exactly; returns whether there are any. While one
 * of the two sums is promoted, the tensor cores work on the other.
 */
template <bool kAllByRow>
__device__ __forceinline__ bool multiply_segment(float (&total)[kAccumulators], const Segment& segment,
                                                 const ScaleReader& scales, const Consumer& self, Ring& ring) {
  float main[kAccumulators], cross[kAccumulators];
  const unsigned offsetA = self.warpgroup * kBoxBytes;
  bool anyExact = false;
#pragma unroll
  for (int i = 0; i < kAccumulators; i++) total[i] = 0.0f;

  // Read one K block ahead, because the first use of a value waits for its load.
  RawFactors ahead = scales.at(segment.kBegin);
  const auto next_promotion = [&](int block) {
    Promotion promotion{Factors(ahead), {}, block};
    ahead = scales.at(min(block + 1, segment.kEnd - 1));
    if constexpr (!kAllByRow) {
      promotion.ways = scales.ways_at(block);
      anyExact |= promotion.ways.have(Way::kExact);
#pragma unroll
      for (int i = 0; i < kColumnBlocks; i++) {
        if (promotion.ways.of[i] != Way::kByRow) promotion.factors.clear(i);
      }
    }
    return promotion;
  };

  barrier_wait(ring.filled(), ring.parity());
  start_cross(cross, ring.a() + offsetA, ring.b());
  start_main(main, ring.a() + offsetA, ring.b());
  Promotion promotion = next_promotion(segment.kBegin);
  multiply_wait<1>(cross);
  promote<kAllByRow, kLoShift>(total, cross, promotion, scales, self);
  multiply_wait<0>(main);
  self.release(ring.emptied());
  ring.advance();

  for (int block = segment.kBegin + 1; block < segment.kEnd; block++) {
    barrier_wait(ring.filled(), ring.parity());
    start_cross(cross, ring.a() + offsetA, ring.b());
    promote<kAllByRow, 0>(total, main, promotion, scales, self);
    start_main(main, ring.a() + offsetA, ring.b());
    promotion = next_promotion(block);
    multiply_wait<1>(cross);
    promote<kAllByRow, kLoShift>(total, cross, promotion, scales, self);
    multiply_wait<0>(main);
    self.release(ring.emptied());
    ring.advance();
  }
  promote<kAllByRow, 0>(total, main, promotion, scales, self);
  return anyExact;
}

__device__ __forceinline__ void consume(const MatmulParams& p, const Consumer& self, Ring ring) {
  Schedule schedule(p);
  Segment segment;
  while (schedule.take(segment)) {
    float total[kAccumulators];
    const ScaleReader scales(p, Tile(p, segment.tile), self);
    // Nearly all data takes a loop without a branch, 4 to 5 % faster on an H200.
    if (scales.all_by_row(segment)) {
      multiply_segment<true>(total, segment, scales, self, ring);
    } else if (multiply_segment<false>(total, segment, scales, self, ring)) {
      add_exact_blocks(p, total, Tile(p, forgotten(segment.tile)), segment, scales, self);
    }
    if (segment.kBegin > 0) {
      write_partial(p, total, self);
      continue;
    }
    int follower = blockIdx.x;
    const int blocksK = schedule.blocks_k();
    for (int done = segment.kEnd; done < blocksK; done += schedule.units_of(follower)) {
      add_partial(p, total, ++follower, self);
    }
    write_tile(p, total, Tile(p, forgotten(segment.tile)), self);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads, 1)
matmul_split_half(const __grid_constant__ MatmulParams params) {
  extern __shared__ unsigned char shared[];
  const unsigned base = (static_cast<unsigned>(__cvta_generic_to_shared(shared)) + 1023u) & ~1023u;
  Ring ring(base);
  if (threadIdx.x == 0) {
    prefetch_map(params.a);
    prefetch_map(params.b);
    for (Ring each(base); each.parity() == 0; each.advance()) {
      barrier_init(each.filled(), 1);
      barrier_init(each.emptied(), 4 * kConsumers);
    }
    publish_barriers();
  }
  __syncthreads();
  asm volatile("griddepcontrol.wait;" ::: "memory");

  const int warpgroup = threadIdx.x / 128;
  if (warpgroup == kConsumers) {
    if (kConsumers > 1) asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (threadIdx.x == kConsumers * 128) produce(params, ring);
  } else {
    if (kConsumers > 1) asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    consume(params, {warpgroup, static_cast<int>(threadIdx.x % 128)}, ring);
  }
}
