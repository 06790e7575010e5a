// kernel   adamw_product(table, skip, coefficients, factor)
//   grid     (G, 1, 1): at most one block a multiprocessor; each walks over many tiles
//   block    (640, 1, 1)
//   dynamic shared memory   kSharedBytes of product_tiles.cuh
//   target   sm_90a
// macros
//   ELEMENT   float16 | bfloat16, of both operands
//   COPY      undefined, or float16 | bfloat16: parameters are also written in that type
//
// AdamW where the gradient of a parameter [m][n] is the product dYᵀ · X of [k][m] and [k][n], for several parameters in one
// launch: the gradient is never in memory. That saves its write and its read, 8 of 36 bytes an element, and the others move
// while tensor cores work on the next tile.
//
// A block has one warpgroup that copies operands to shared memory, two that multiply, 64 rows of a tile each, and two that
// update. The sums of a tile pass through shared memory, so that its update runs beside the product of the next one, and
// reads and writes whole rows.
#include "adamw.cuh"
#include "product_tiles.cuh"
#include "update.cuh"

namespace {

__device__ __forceinline__ float4 read_once(const float* address) { return __ldcs(reinterpret_cast<const float4*>(address)); }
__device__ __forceinline__ void write_once(float* address, float4 values) {
  __stcs(reinterpret_cast<float4*>(address), values);
}

/** Four columns of a row, a lane's part of it: the parameter and its moments. */
struct Quad {
  float4 parameter, first, second;
};

constexpr int kWriters = 2;  // warpgroups
constexpr int kWriterWarps = 4 * kWriters;
// Rows of a warp are loaded in batches, one ahead of its use, and brought to L2 before that. Of 1, 2 and 4 rows, one
// warpgroup or two, and 0 to 16 batches ahead, these were the fastest on an H200; see docs/compiled-steps.md.
constexpr int kRowsOfBatch = 2;
constexpr int kBatchesAhead = 2;
// Of a thread; together the 96 a thread with which the block starts.
constexpr int kCopierRegisters = 24, kMultiplierRegisters = 96, kWriterRegisters = 128;
constexpr int kBatches = kBlockM / kWriterWarps / kRowsOfBatch;
static_assert(kBlockN == 128, "a warp takes a row at once");

/** This lane's part of what is brought to L2 ahead of its use: one row of the batch that its warp takes, of one array. */
struct Ahead {
  const float* start;
  int rowsLeft, bytes;
  int64 pitch;

  __device__ __forceinline__ void enter(const ProductTable& table, int number, int warp, int lane) {
    rowsLeft = 0;
    if (number >= table.tileCount || lane >= 3 * kRowsOfBatch) return;
    const Tile tile = tile_at(table, number);
    const GradientProduct& product = table.products[tile.product];
    const int row = tile.row + lane / 3 * kWriterWarps + warp;
    const float* const array = lane % 3 == 0 ? product.parameter : lane % 3 == 1 ? product.first : product.second;
    rowsLeft = product.m - row;
    bytes = min(product.n - tile.column, kBlockN) * 4;
    pitch = product.n;
    start = array + row * pitch + tile.column;
  }

  __device__ __forceinline__ void bring(int batch) const {
    const int row = batch * kRowsOfBatch * kWriterWarps;
    if (row >= rowsLeft) return;
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(start + row * pitch), "r"(bytes) : "memory");
  }
};

/** Updates what the block's tiles are gradients of; one of kWriterWarps warps. */
struct Writer {
  const ProductTable& table;
  const SharedMemory& memory;
  const float* sums;
  const AdamWCoefficients coefficients;
  const float factor;
  const int warp, lane;

  // Of the tile at hand.
  float *parameter, *first, *second;
  Copy* copy;
  int rowsLeft, columnsLeft, n;
  // Of that tile and of the one after it.
  Ahead here, ahead;

  __device__ __forceinline__ void enter(int number) {
    const Tile tile = tile_at(table, number);
    const GradientProduct& product = table.products[tile.product];
    n = product.n;
    rowsLeft = product.m - tile.row;
    columnsLeft = n - tile.column;
    const int64 start = static_cast<int64>(tile.row) * n + tile.column;
    parameter = product.parameter + start;
    first = product.first + start;
    second = product.second + start;
    copy = product.copy == nullptr ? nullptr : static_cast<Copy*>(product.copy) + start;
  }

  __device__ __forceinline__ int row_of(int batch, int i) const { return (batch * kRowsOfBatch + i) * kWriterWarps + warp; }
  __device__ __forceinline__ bool exists(int row) const { return row < rowsLeft && 4 * lane < columnsLeft; }
  __device__ __forceinline__ int64 place(int row) const { return static_cast<int64>(row) * n + 4 * lane; }

  __device__ __forceinline__ void load(Quad (&quads)[kRowsOfBatch], int batch) const {
#pragma unroll
    for (int i = 0; i < kRowsOfBatch; i++) {
      const int row = row_of(batch, i);
      if (!exists(row)) continue;
      const int64 at = place(row);
      quads[i] = {read_once(parameter + at), read_once(first + at), read_once(second + at)};
    }
  }

  __device__ __forceinline__ void update(Quad (&quads)[kRowsOfBatch], int batch) const {
#pragma unroll
    for (int i = 0; i < kRowsOfBatch; i++) {
      const int row = row_of(batch, i);
      const float4 gradient = *reinterpret_cast<const float4*>(sums + row * kBlockN + column_in_sums(row, 4 * lane));
      Quad& quad = quads[i];
#pragma unroll
      for (int c = 0; c < 4; c++) {
        adamw_element((&quad.parameter.x)[c], (&quad.first.x)[c], (&quad.second.x)[c],
                      scaled((&gradient.x)[c], factor), coefficients);
      }
      if (!exists(row)) continue;
      const int64 at = place(row);
      write_once(parameter + at, quad.parameter);
      write_once(first + at, quad.first);
      write_once(second + at, quad.second);
      if (kCopies > 0 && copy != nullptr) {
        const float4 p = quad.parameter;
        __stcs(reinterpret_cast<uint2*>(copy + at), make_uint2(pack_pair<Copy>(p.x, p.y), pack_pair<Copy>(p.z, p.w)));
      }
    }
  }

  /** Brings a batch to L2: of the tile at hand, or of the one after it. */
  __device__ __forceinline__ void bring(int batch) const {
    if (batch < kBatches) here.bring(batch);
    else ahead.bring(batch - kBatches);
  }

  __device__ __forceinline__ void run() {
    unsigned parity = 0;
    Quad now[kRowsOfBatch], next[kRowsOfBatch];
    ahead.enter(table, blockIdx.x, warp, lane);
    for (int batch = 0; batch < kBatchesAhead; batch++) ahead.bring(batch);
    for (int number = blockIdx.x; number < table.tileCount; number += gridDim.x, parity ^= 1) {
      enter(number);
      here = ahead;
      ahead.enter(table, number + gridDim.x, warp, lane);
      load(now, 0);
#pragma unroll 1
      for (int batch = 0; batch < kBatches; batch += 2) {
        bring(batch + kBatchesAhead);
        load(next, batch + 1);
        // A warp's rows lie in the half of the one warpgroup that multiplies, then in the other's.
        if (batch == 0) barrier_wait(memory.sums_ready(0), parity);
        if (batch == kBatches / 2) barrier_wait(memory.sums_ready(1), parity);
        update(now, batch);
        bring(batch + 1 + kBatchesAhead);
        if (batch + 2 < kBatches) load(now, batch + 2);
        update(next, batch + 1);
        if (batch + 2 == kBatches / 2) barrier_arrive(memory.sums_taken(0));
      }
      barrier_arrive(memory.sums_taken(1));
    }
  }
};

static_assert(kBatches % 4 == 0 && kBatchesAhead <= kBatches, "a warp goes through each half of a tile in whole pairs of batches");

template <int registers>
__device__ __forceinline__ void give_up_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

constexpr int kBlockThreads = 128 * (1 + kMultipliers + kWriters);

}  // namespace

extern "C" __global__ void __launch_bounds__(kBlockThreads, 1)
    adamw_product(const __grid_constant__ ProductTable table, const float* skip, const float* coefficients,
                  const float* factor) {
  extern __shared__ unsigned char shared[];
  const unsigned start = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  const SharedMemory memory{(start + 1023u) & ~1023u};
  if (threadIdx.x == 0) start_barriers(memory, 32 * kWriterWarps);
  __syncthreads();
  if (isSkipped(skip)) return;
  unsigned char* const aligned = shared + (memory.base - start);
  // The same for a whole warp, and known as such to the compiler.
  const int warpgroup = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
  if (warpgroup == 0) {
    give_up_registers<kCopierRegisters>();
    if (threadIdx.x == 0) copy_operands(table, memory);
  } else if (warpgroup <= kMultipliers) {
    take_registers<kMultiplierRegisters>();
    multiply(table, memory, aligned, warpgroup - 1);
  } else {
    take_registers<kWriterRegisters>();
    const AdamWCoefficients c{coefficients[0], coefficients[1], coefficients[2],
                              coefficients[3], coefficients[4], coefficients[5]};
    const float* const sums = reinterpret_cast<const float*>(aligned + kStages * kStageBytes);
    const int thread = threadIdx.x - 128 * (1 + kMultipliers);
    Writer{table, memory, sums, c, factorAt(factor), thread / 32, thread % 32}.run();
  }
}
