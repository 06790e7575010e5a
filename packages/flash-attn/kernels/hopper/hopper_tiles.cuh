// What the Hopper kernels of attention share: tiles in shared memory, how TMA fills and empties them, and the small
// instructions around the products.
//
// A tile of a head's rows lies as parts of CHUNK columns side by side, [part][row][CHUNK], each row of 2 · CHUNK bytes
// swizzled (16-byte pieces change places so that eight rows lie in different banks); one product spans the parts by its
// descriptor. A head may have fewer columns d than HEAD_DIM: TMA fills up tiles with zeros, which add nothing to a
// product, and stores none of what lies outside of the tensor. Where CHUNK does not divide HEAD_DIM, no product reads the
// end of the last part.
//
// Tensor maps of a [batch][heads][sequence][d] tensor (src/cuda/hopper/head-tensor-map.ts writes them), with CHUNK columns c:
//   c = 16, and d = HEAD_DIM  dimensions {c, sequence, d/c, heads, batch}, a box {c, rows, d/c, 1, 1}: one copy brings a
//           tile, which in parts so narrow would take many
//   else    dimensions {d, sequence, 1, heads, batch}, a box {c, rows, 1, 1, 1}: one copy a part
//   swizzle of 2 · c bytes, zeros for what lies outside of the tensor
#ifndef ROOFLINE_HOPPER_TILES_CUH
#define ROOFLINE_HOPPER_TILES_CUH

#include "exp2.cuh"
#include "hopper.cuh"
#include "wgmma.cuh"

namespace {

constexpr int kHeadDim = HEAD_DIM;
constexpr int kPitch = CHUNK * 2;  // bytes of a row of a part
constexpr int kParts = (HEAD_DIM + CHUNK - 1) / CHUNK;
constexpr int kCopies = CHUNK == 16 ? 1 : kParts;

template <int rows>
constexpr int kTileBytes = rows * kParts* kPitch;

__device__ __forceinline__ int ceil_div(int a, int b) { return (a + b - 1) / b; }

// Tiles ---------------------------------------------------------------------------------------------------

/** Copies the rows from `row` on of a head to a tile, and counts its bytes at `barrier`. */
template <int rows, int copies = kCopies>
__device__ __forceinline__ void copy_tile(const TensorMap& map, unsigned tile, unsigned barrier, int row, int head,
                                          int batch) {
#pragma unroll
  for (int part = 0; part < copies; part++) {
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(tile + part * rows * kPitch),
        "l"(&map), "r"(barrier), "r"(part * CHUNK), "r"(row), "r"(0), "r"(head), "r"(batch)
        : "memory");
  }
}

/** Copies 64 rows of one part of a tile to a head's rows from `row` on, those that exist. `map` has boxes of one part. */
template <int copies = kCopies>
__device__ __forceinline__ void store_part(const TensorMap& map, unsigned source, int part, int row, int head,
                                           int batch) {
  constexpr bool kOneCopy = copies == 1;
  asm volatile("cp.async.bulk.tensor.5d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5, %6}], [%1];" ::"l"(&map),
               "r"(source), "r"(kOneCopy ? 0 : part * CHUNK), "r"(row), "r"(kOneCopy ? part : 0), "r"(head), "r"(batch)
               : "memory");
}

__device__ __forceinline__ void commit_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/** Until the stores have read shared memory. */
__device__ __forceinline__ void wait_for_stores_to_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
__device__ __forceinline__ void wait_for_stores() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
/** What threads wrote to shared memory is seen by TMA and products that are started after it. */
__device__ __forceinline__ void publish_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/**
 * Descriptor of a matrix in shared memory whose rows have `pitch` bytes, swizzled over as many. `partBytes`: from one
 * part to the next, where the columns of a product span several and run along M or N.
 */
template <int pitch = kPitch>
__device__ __forceinline__ uint64 tile_descriptor(unsigned address, int partBytes = 16) {
  constexpr uint64 swizzle = static_cast<uint64>(pitch == 128 ? 1 : pitch == 64 ? 2 : 3) << 62;
  constexpr uint64 eightRows = static_cast<uint64>(8 * pitch >> 4) << 32;
  return swizzle | eightRows | static_cast<uint64>(partBytes >> 4) << 16 | (address & 0x3ffffu) >> 4;
}

/** Advance of a descriptor to columns 16 · step of a tile, for products along its columns. */
template <int rows>
__device__ __forceinline__ constexpr int column_step(int step) {
  return (step * 16 / CHUNK * (rows * kPitch) + step * 16 % CHUNK * 2) >> 4;
}

/** Advance of a descriptor to row 16 · step, for products along the rows. */
template <int pitch = kPitch>
__device__ __forceinline__ constexpr int row_step(int step) {
  return step * 16 * pitch >> 4;
}

/** Where the 8 columns of number `piece` of a row lie in a tile. */
template <int rows, int pitch = kPitch>
__device__ __forceinline__ unsigned piece_offset(int row, int piece) {
  constexpr int kPieces = pitch / 16;
  const int swizzled = (piece % kPieces) ^ ((row * pitch >> 7) & (kPieces - 1));
  return piece / kPieces * (rows * pitch) + row * pitch + swizzled * 16;
}

/** Writes a product's 64 × 16k sums to a tile's rows from `row` on: this thread's, as pairs of ELEMENT. */
template <int rows, int pitch, int pairs>
__device__ __forceinline__ void store_fragments(unsigned tile, int row, const uint32 (&values)[pairs]) {
  const int thread = threadIdx.x % 128, lane = thread % 32;
#pragma unroll
  for (int i = 0; i < pairs / 4; i++) {
    const unsigned target = tile + piece_offset<rows, pitch>(row + thread / 32 * 16 + lane % 16, 2 * i + lane / 16);
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(target), "r"(values[4 * i]),
                 "r"(values[4 * i + 1]), "r"(values[4 * i + 2]), "r"(values[4 * i + 3])
                 : "memory");
  }
}

// Registers -----------------------------------------------------------------------------------------------

template <int count>
__device__ __forceinline__ void give_up_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}
template <int count>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

/** Until at most `pending` groups of products run. What they wrote is to be pinned before it is read. */
template <int pending>
__device__ __forceinline__ void multiply_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

/** The compiler moves nothing that reads or writes these registers from one side of this to the other. */
template <int count>
__device__ __forceinline__ void pin(float (&x)[count]) {
#pragma unroll
  for (int i = 0; i < count; i++) asm volatile("" : "+f"(x[i])::"memory");
}
template <int count>
__device__ __forceinline__ void pin(uint32 (&x)[count]) {
#pragma unroll
  for (int i = 0; i < count; i++) asm volatile("" : "+r"(x[i])::"memory");
}

// Barriers of some warpgroups, by number --------------------------------------------------------------------

__device__ __forceinline__ void threads_sync(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
__device__ __forceinline__ void threads_arrive(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

/** Position in a ring of stages, and the parity of the barriers' phase. */
template <int stages>
struct Ring {
  int stage = 0;
  unsigned parity = 0;

  __device__ __forceinline__ void advance() {
    if (++stage == stages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

// Numbers -------------------------------------------------------------------------------------------------

/** The two values of a pair, of which the first lies in the low half. */
template <typename T>
__device__ __forceinline__ float2 unpack_pair(uint32 pair) {
  return {to_float(T{static_cast<uint16>(pair)}), to_float(T{static_cast<uint16>(pair >> 16)})};
}

}  // namespace

#endif
