// Products dYᵀ · X by tiles, for kernels that go on with the sums: how tiles are numbered, how one warpgroup copies operands
// to shared memory, and how two multiply them and leave the sums there.
#ifndef ROOFLINE_OPTIM_PRODUCT_TILES_CUH
#define ROOFLINE_OPTIM_PRODUCT_TILES_CUH

#include "hopper.cuh"
#include "wgmma.cuh"

namespace {

constexpr int kBlockM = 128;
constexpr int kBlockN = 128;
constexpr int kBlockK = 64;
constexpr int kStages = 4;
constexpr int kMultipliers = 2;  // warpgroups of 64 rows each
// Boxes of 64 columns and kBlockK rows, which TMA swizzles by 128 bytes.
constexpr int kBoxBytes = 64 * kBlockK * 2;
constexpr int kBoxesA = kBlockM / 64;
constexpr int kBoxesB = kBlockN / 64;
constexpr int kStageBytes = (kBoxesA + kBoxesB) * kBoxBytes;
constexpr int kSumsBytes = kBlockM * kBlockN * 4;
constexpr int kBarrierBytes = 8 * (2 * kStages + 2 * kMultipliers);
constexpr int kSharedBytes = 1024 + kStages * kStageBytes + kSumsBytes + kBarrierBytes;
// As many as fit into the parameters of a launch.
constexpr int kMaxProducts = 12;
// Rows of tiles that are walked through column by column, so that blocks at work share operands in L2.
constexpr int kTileRowsTogether = 8;

/** A product whose sums are the gradient of one parameter. See src/multi-tensor/gradient-products.ts. */
struct GradientProduct {
  TensorMap dy;  // [k][m], boxes of 64 columns and kBlockK rows
  TensorMap x;   // [k][n], likewise
  float* parameter;
  float* first;
  float* second;
  void* copy;  // may be null
  int m, n, k;
  int firstTile;  // of all tiles of the launch
};

struct ProductTable {
  GradientProduct products[kMaxProducts];
  int productCount;
  int tileCount;
};

struct Tile {
  int product, row, column;
};

__device__ __forceinline__ Tile tile_at(const ProductTable& table, int number) {
  int product = 0;
  while (product + 1 < table.productCount && table.products[product + 1].firstTile <= number) product++;
  const int index = number - table.products[product].firstTile;
  const int rows = (table.products[product].m + kBlockM - 1) / kBlockM;
  const int columns = (table.products[product].n + kBlockN - 1) / kBlockN;
  const int perGroup = kTileRowsTogether * columns;
  const int firstRow = index / perGroup * kTileRowsTogether;
  const int rowsTogether = min(rows - firstRow, kTileRowsTogether);
  const int inGroup = index % perGroup;
  return {product, (firstRow + inGroup % rowsTogether) * kBlockM, inGroup / rowsTogether * kBlockN};
}

/** The block's shared memory, by address. */
struct SharedMemory {
  unsigned base;
  __device__ __forceinline__ unsigned stage(int i) const { return base + i * kStageBytes; }
  __device__ __forceinline__ unsigned sums() const { return base + kStages * kStageBytes; }
  __device__ __forceinline__ unsigned filled(int i) const { return sums() + kSumsBytes + 8 * i; }
  __device__ __forceinline__ unsigned emptied(int i) const { return filled(kStages + i); }
  __device__ __forceinline__ unsigned sums_ready(int multiplier) const { return filled(2 * kStages + multiplier); }
  __device__ __forceinline__ unsigned sums_taken(int multiplier) const {
    return filled(2 * kStages + kMultipliers + multiplier);
  }
};

struct Ring {
  int stage = 0;
  unsigned parity = 0;
  __device__ __forceinline__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

/** By one thread, before any other touches the barriers; `takers` threads take the sums of a multiplier. */
__device__ __forceinline__ void start_barriers(const SharedMemory& memory, int takers) {
  for (int i = 0; i < kStages; i++) {
    barrier_init(memory.filled(i), 1);
    barrier_init(memory.emptied(i), 4 * kMultipliers);
  }
  for (int i = 0; i < kMultipliers; i++) {
    barrier_init(memory.sums_ready(i), 128);
    barrier_init(memory.sums_taken(i), takers);
  }
  publish_barriers();
}

/** By one thread: copies the operands of all tiles of this block, as far ahead as there are stages. */
__device__ __forceinline__ void copy_operands(const ProductTable& table, const SharedMemory& memory) {
  Ring ring;
  for (int number = blockIdx.x; number < table.tileCount; number += gridDim.x) {
    const Tile tile = tile_at(table, number);
    const GradientProduct& product = table.products[tile.product];
    for (int k = 0; k < product.k; k += kBlockK) {
      barrier_wait(memory.emptied(ring.stage), ring.parity ^ 1);
      barrier_expect(memory.filled(ring.stage), kStageBytes);
      unsigned target = memory.stage(ring.stage);
#pragma unroll
      for (int box = 0; box < kBoxesA; box++, target += kBoxBytes) {
        copy_box(product.dy, target, memory.filled(ring.stage), tile.row + 64 * box, k, 0, 0);
      }
#pragma unroll
      for (int box = 0; box < kBoxesB; box++, target += kBoxBytes) {
        copy_box(product.x, target, memory.filled(ring.stage), tile.column + 64 * box, k, 0, 0);
      }
      ring.advance();
    }
  }
}

/**
 * Floats from the start of a row of sums to `column`. Pieces of eight columns change places, so that a warp that writes pairs
 * to eight rows meets each bank once.
 */
__device__ __forceinline__ int column_in_sums(int row, int column) { return column ^ (row % 4 * 8); }

/** A warpgroup multiplies its 64 rows of all tiles of this block, and leaves the sums in shared memory. */
__device__ __forceinline__ void multiply(const ProductTable& table, const SharedMemory& memory, unsigned char* shared,
                                         int multiplier) {
  const int lane = threadIdx.x % 32;
  const int row = threadIdx.x % 128 / 32 * 16 + lane / 4;
  float* const sums = reinterpret_cast<float*>(shared) + (kStages * kStageBytes / 4) + (64 * multiplier + row) * kBlockN;
  Ring ring;
  unsigned parity = 1;
  for (int number = blockIdx.x; number < table.tileCount; number += gridDim.x, parity ^= 1) {
    float sum[kBlockN / 2];
    const int blocks = (table.products[tile_at(table, number).product].k + kBlockK - 1) / kBlockK;
    int last = 0;
    for (int block = 0; block < blocks; block++) {
      barrier_wait(memory.filled(ring.stage), ring.parity);
      const unsigned a = memory.stage(ring.stage) + multiplier * kBoxBytes;
      const unsigned b = memory.stage(ring.stage) + kBoxesA * kBoxBytes;
      multiply_fence();
#pragma unroll
      for (int step = 0; step < kBlockK / 16; step++) {
        constexpr int kStep = 16 * 128 >> 4;  // 16 rows of a box down
        Product<kBlockN>::of_shared<1, 1>(sum, matrix_descriptor<kBoxBytes>(a) + step * kStep,
                                          matrix_descriptor<kBoxBytes>(b) + step * kStep, block > 0 || step > 0);
      }
      multiply_commit();
      if (block > 0) {
        multiply_wait<1>(sum);
        if (lane == 0) barrier_arrive(memory.emptied(last));
      }
      last = ring.stage;
      ring.advance();
    }
    multiply_wait<0>(sum);
    if (lane == 0) barrier_arrive(memory.emptied(last));
    barrier_wait(memory.sums_taken(multiplier), parity);
#pragma unroll
    for (int i = 0; i < kBlockN / 8; i++) {
      const int column = column_in_sums(row, 8 * i + lane % 4 * 2);
      *reinterpret_cast<float2*>(sums + column) = {sum[4 * i], sum[4 * i + 1]};
      *reinterpret_cast<float2*>(sums + 8 * kBlockN + column) = {sum[4 * i + 2], sum[4 * i + 3]};
    }
    barrier_arrive(memory.sums_ready(multiplier));
  }
}

}  // namespace

#endif
