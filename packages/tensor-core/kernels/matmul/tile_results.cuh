// What matmul_split_half.cu writes: partial sums of tiles that several blocks share, and tiles of C.
#ifndef ROOFLINE_TILE_RESULTS_CUH
#define ROOFLINE_TILE_RESULTS_CUH

#include "consumer.cuh"
#include "stream_k.cuh"
#include "tile_shape.cuh"

namespace {

__device__ __forceinline__ void write_partial(const MatmulParams& p, const float (&total)[kAccumulators],
                                              const Consumer& self) {
  const int slot = blockIdx.x * kConsumers + self.warpgroup;
  float* partial = p.partials + static_cast<long long>(slot) * 64 * BLOCK_N + self.thread * 4;
#pragma unroll
  for (int i = 0; i < kAccumulators; i += 4) {
    asm volatile("st.global.cg.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(partial + i * 128), "f"(total[i]),
                 "f"(total[i + 1]), "f"(total[i + 2]), "f"(total[i + 3])
                 : "memory");
  }
  __threadfence();
  self.sync();
  if (self.thread == 0) asm volatile("st.release.gpu.global.s32 [%0], 1;" ::"l"(p.ready + slot) : "memory");
}

__device__ __forceinline__ void add_partial(const MatmulParams& p, float (&total)[kAccumulators], int block,
                                            const Consumer& self) {
  const int slot = block * kConsumers + self.warpgroup;
  if (self.thread == 0) {
    int ready = 0;
    while (!ready) asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(ready) : "l"(p.ready + slot) : "memory");
    p.ready[slot] = 0;
  }
  self.sync();
  const float* partial = p.partials + static_cast<long long>(slot) * 64 * BLOCK_N + self.thread * 4;
#pragma unroll
  for (int i = 0; i < kAccumulators; i += 4) {
    float4 x;
    asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                 : "l"(partial + i * 128)
                 : "memory");
    total[i] += x.x, total[i + 1] += x.y, total[i + 2] += x.z, total[i + 3] += x.w;
  }
}

/** Writes a thread's part of one row of the tile: pairs of neighbours, 8 columns apart. */
__device__ __forceinline__ void write_row(const MatmulParams& p, const float (&total)[kAccumulators], int half, float* c,
                                          int columns, bool pairs) {
  // Most rows are complete, and need little code.
  if (pairs && columns >= BLOCK_N - 6) {
#pragma unroll
    for (int i = 0; i < BLOCK_N / 8; i++) {
      const float* sums = total + i * 4 + half * 2;
      *reinterpret_cast<float2*>(c + i * 8) = make_float2(sums[0] * p.alpha, sums[1] * p.alpha);
    }
  } else {
#pragma unroll
    for (int i = 0; i < BLOCK_N / 8; i++) {
      const float* sums = total + i * 4 + half * 2;
      if (columns > i * 8) c[i * 8] = sums[0] * p.alpha;
      if (columns > i * 8 + 1) c[i * 8 + 1] = sums[1] * p.alpha;
    }
  }
}

__device__ __forceinline__ void write_tile(const MatmulParams& p, const float (&total)[kAccumulators],
                                           const Tile& tile, const Consumer& self) {
  const int row = tile.row + self.warpgroup * 64 + self.row();
  const int column = tile.column + self.column();
  float* c = p.c + tile.batch * p.batchStrideC + static_cast<long long>(row) * p.pitchC + column;
  const bool pairs = (reinterpret_cast<unsigned long long>(p.c) & 7u) == 0 && ((p.pitchC | p.batchStrideC) & 1) == 0;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    if (row + half * 8 < p.m) write_row(p, total, half, c + half * 8ll * p.pitchC, p.n - column, pairs);
  }
}

}  // namespace

#endif
