// Rows that are loaded by way of what an element-wise op before the kernel makes of others; see row.cuh and edges.cuh.
#ifndef ROOFLINE_EDGED_ROW_CUH
#define ROOFLINE_EDGED_ROW_CUH

#include "edges.cuh"
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

#endif
