// Rows that are loaded by way of what an element-wise op before the kernel makes of others; see row.cuh and fusion.cuh.
#ifndef ROOFLINE_EDGED_ROW_CUH
#define ROOFLINE_EDGED_ROW_CUH

#include "fusion.cuh"
#include "row.cuh"

static_assert(!kHasBefore || ROW_VECTORS > 0, "a row that is loaded twice must not be made on the way");

/** Row::load of row `at` of [any, columns], by way of `before`. */
template <typename Stored>
__device__ __forceinline__ void load_row(Row<Stored>& row, const Stored* from, int64 at, int columns, const Before& before) {
  row.address = from + at * columns;
  row.columns = columns;
  if constexpr (ROW_VECTORS > 0) {
    for_each_vector(columns, [&](int column, int v) {
      row.kept[v] = before.load<VECTOR_LENGTH>(from, at * columns + column, column);
    });
  }
}

/** What `after` needs of memory for a thread's share of a row; of a row that is too long for registers, nothing yet. */
struct AfterRow {
  After::Loaded<VECTOR_LENGTH> kept[ROW_VECTORS > 0 ? ROW_VECTORS : 1];

  /** For row `at` of [any, columns]. */
  __device__ __forceinline__ void load(const After& after, int64 at, int columns) {
    if constexpr (ROW_VECTORS > 0) {
      for_each_vector(columns, [&](int column, int v) {
        kept[v] = after.load<VECTOR_LENGTH>(at * columns + column, column);
      });
    }
  }

  /** The vector at `column`, which for_each_vector named with `v`. */
  template <typename Stored>
  __device__ __forceinline__ void store(const After& after, Stored* to, int64 at, int columns, int column, int v,
                                        const compute_t<Stored> (&x)[VECTOR_LENGTH]) const {
    const int64 first = at * columns + column;
    if constexpr (ROW_VECTORS > 0) {
      after.store(to, first, kept[v], x);
    } else {
      after.store(to, first, after.load<VECTOR_LENGTH>(first, column), x);
    }
  }
};

#endif
