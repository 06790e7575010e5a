// Rows: how the kernels that work along a contiguous dimension (softmax, norms) hold and walk one.
//
// A kernel that includes this file is compiled for one shape of work, by macros that src/ops/support/row-kernel.ts sets:
//   ELEMENT        storage type of the elements
//   VECTOR_LENGTH  elements that a thread takes at a time; it divides the row's length
//   UNALIGNED_VECTORS  0 if rows are aligned to these, which one instruction then loads; 1 if they are loaded one by one
//   ROW_THREADS    threads that share a row, a power of two; below 32 several rows share a warp
//   ROW_VECTORS    vectors that each thread keeps of its row in registers, or 0: the row is too long for that,
//                  and each pass reads it from memory again
//   BLOCK_THREADS  threads of a block: ROW_THREADS, or more for short rows, when a block works on several
#ifndef ROOFLINE_ROW_CUH
#define ROOFLINE_ROW_CUH

#include "prelude.cuh"

constexpr int kRowThreads = ROW_THREADS;
constexpr int kBlockThreads = BLOCK_THREADS;
constexpr int kRowsPerBlock = kBlockThreads / kRowThreads;
static_assert(kRowsPerBlock == 1 || kRowThreads <= 32, "rows that share a block must not need its barrier");

__device__ __forceinline__ int row_thread() { return threadIdx.x % kRowThreads; }

/** The row that this thread works on first; the grid covers gridDim.x · kRowsPerBlock rows at a time. */
__device__ __forceinline__ int64 first_row() {
  return static_cast<int64>(blockIdx.x) * kRowsPerBlock + threadIdx.x / kRowThreads;
}

/** Folds x over the threads of a row; each gets the result, bit for bit the same. */
template <typename C, typename Combine>
__device__ __forceinline__ C row_reduce(C x, Combine combine) {
  if constexpr (kRowThreads <= 32) {
    return warp_reduce<kRowThreads>(x, combine);
  } else {
    return block_reduce<kRowThreads>(x, combine);
  }
}

template <typename C>
__device__ __forceinline__ C row_sum(C x) {
  return row_reduce(x, Sum{});
}

/** Loads kLength elements in the type to compute in. */
template <int kLength, typename Stored>
__device__ __forceinline__ void load_values(compute_t<Stored> (&x)[kLength], const Stored* address) {
  const Vector<Stored, kLength> vector = load_vector<kLength>(address);
#pragma unroll
  for (int i = 0; i < kLength; i++) x[i] = to_compute(vector[i]);
}

/** Stores kLength elements, rounded to the storage type. */
template <int kLength, typename Stored>
__device__ __forceinline__ void store_values(Stored* address, const compute_t<Stored> (&x)[kLength]) {
  Vector<Stored, kLength> vector;
#pragma unroll
  for (int i = 0; i < kLength; i++) vector[i] = convert<Stored>(x[i]);
  store_vector<kLength>(address, vector);
}

/** Calls body(column, v) for the first column of each of this thread's vectors of a row; v counts them. */
template <typename Body>
__device__ __forceinline__ void for_each_vector(int columns, Body body) {
  if constexpr (ROW_VECTORS > 0) {
#pragma unroll
    for (int v = 0; v < ROW_VECTORS; v++) {
      const int column = (v * kRowThreads + row_thread()) * VECTOR_LENGTH;
      if (column < columns) body(column, v);
    }
  } else {
#pragma unroll 4
    for (int column = row_thread() * VECTOR_LENGTH; column < columns; column += kRowThreads * VECTOR_LENGTH) {
      body(column, 0);
    }
  }
}

/** One thread's share of a row: kept in registers, or read again by each pass. */
template <typename Stored>
struct Row {
  using C = compute_t<Stored>;

  const Stored* address;
  int columns;
  Vector<Stored, VECTOR_LENGTH> kept[ROW_VECTORS > 0 ? ROW_VECTORS : 1];

  __device__ __forceinline__ void load(const Stored* from, int length) {
    address = from;
    columns = length;
    if constexpr (ROW_VECTORS > 0) {
      for_each_vector(columns, [&](int column, int v) { kept[v] = load_vector<VECTOR_LENGTH>(address + column); });
    }
  }

  /** The vector at `column`, which for_each_vector named with `v`, in the type to compute in. */
  __device__ __forceinline__ void read(C (&x)[VECTOR_LENGTH], int column, int v) const {
    Vector<Stored, VECTOR_LENGTH> vector = kept[v];
    if constexpr (ROW_VECTORS == 0) vector = load_vector<VECTOR_LENGTH>(address + column);
#pragma unroll
    for (int i = 0; i < VECTOR_LENGTH; i++) x[i] = to_compute(vector[i]);
  }
};

#endif
