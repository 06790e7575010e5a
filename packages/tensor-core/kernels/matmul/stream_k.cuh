// Which K blocks of which tiles of C each thread block of matmul_split_half.cu multiplies.
#ifndef ROOFLINE_STREAM_K_CUH
#define ROOFLINE_STREAM_K_CUH

#include "split_half.cuh"

namespace {

__device__ __forceinline__ int ceil_div(int a, int b) { return (a + b - 1) / b; }

/** x, hidden from nvcc's analysis, so that values derived from it are recomputed instead of kept in registers. */
__device__ __forceinline__ int forgotten(int x) {
  asm volatile("" : "+r"(x));
  return x;
}

/** Some K blocks of one tile. */
struct Segment {
  int tile, kBegin, kEnd;
};

/**
 * The first streamTiles tiles are distributed by K blocks, each block of the grid taking an equal run ("stream-K", Osama et
 * al. 2023); the rest whole, in turn. A run that starts inside a tile leaves a partial sum; the block that starts the tile
 * adds those of its followers, in order, and writes C. Partial sums come first in a run and wait for nothing, so no block
 * waits for one that is itself waiting.
 */
struct Schedule {
  const MatmulParams& p;
  int unit, unitEnd, nextTile;

  __device__ __forceinline__ explicit Schedule(const MatmulParams& p) : p(p) {
    const int self = blockIdx.x, grid = gridDim.x, units = p.streamTiles * blocks_k();
    unit = self * (units / grid) + min(self, units % grid);
    unitEnd = unit + units_of(self);
    nextTile = p.streamTiles + self;
  }

  __device__ __forceinline__ int blocks_k() const { return ceil_div(forgotten(p.k), kBlock); }
  __device__ __forceinline__ int units_of(int block) const {
    const int units = p.streamTiles * blocks_k(), grid = gridDim.x;
    return units / grid + (block < units % grid ? 1 : 0);
  }

  __device__ __forceinline__ bool take(Segment& segment) {
    const int blocksK = blocks_k();
    if (unit < unitEnd) {
      segment.tile = unit / blocksK;
      segment.kBegin = unit - segment.tile * blocksK;
      segment.kEnd = min(blocksK, segment.kBegin + unitEnd - unit);
      unit += segment.kEnd - segment.kBegin;
      return true;
    }
    if (nextTile >= ceil_div(p.m, BLOCK_M) * ceil_div(p.n, BLOCK_N) * p.batch) return false;
    segment = {nextTile, 0, blocksK};
    nextTile += gridDim.x;
    return true;
  }
};

/** The location of a tile. Columns of groupM tiles keep operands in L2. */
struct Tile {
  int batch, row, column;

  __device__ __forceinline__ Tile(const MatmulParams& p, int tile) {
    const int tilesM = ceil_div(p.m, BLOCK_M), tilesN = ceil_div(p.n, BLOCK_N);
    batch = tile / (tilesM * tilesN);
    const int inBatch = tile - batch * tilesM * tilesN;
    const int firstM = inBatch / (p.groupM * tilesN) * p.groupM;
    const int inGroup = inBatch - firstM * tilesN, height = min(p.groupM, tilesM - firstM);
    row = (firstM + inGroup % height) * BLOCK_M;
    column = inGroup / height * BLOCK_N;
  }
};

}  // namespace

#endif
