// Rows loaded through a prologue and stored through an epilogue; see row.cuh and fusion.cuh.
#ifndef ROOFLINE_FUSED_ROW_CUH
#define ROOFLINE_FUSED_ROW_CUH

#include "fusion.cuh"
#include "row.cuh"

static_assert(!kHasPrologue || ROW_VECTORS > 0, "a row that is loaded twice cannot have a prologue");

/** Row::load of row `at` of [any, columns], through `prologue`. */
template <typename Stored>
__device__ __forceinline__ void load_row(Row<Stored>& row, const Stored* from, int64 at, int columns, const Prologue& prologue) {
  row.address = from + at * columns;
  row.columns = columns;
  if constexpr (ROW_VECTORS > 0) {
    for_each_vector(columns, [&](int column, int v) {
      row.kept[v] = prologue.load<VECTOR_LENGTH>(from, at * columns + column, column);
    });
  }
}

/** What the epilogue loads for a thread's share of a row; empty for a row too long for registers, which loads it late. */
struct EpilogueRow {
  Epilogue::Loaded<VECTOR_LENGTH> kept[ROW_VECTORS > 0 ? ROW_VECTORS : 1];

  /** For row `at` of [any, columns]. */
  __device__ __forceinline__ void load(const Epilogue& epilogue, int64 at, int columns) {
    if constexpr (ROW_VECTORS > 0) {
      for_each_vector(columns, [&](int column, int v) {
        kept[v] = epilogue.load<VECTOR_LENGTH>(at * columns + column, column);
      });
    }
  }

  /** The vector at `column`, which for_each_vector named with `v`. */
  template <typename Stored>
  __device__ __forceinline__ void store(const Epilogue& epilogue, Stored* to, int64 at, int columns, int column, int v,
                                        const compute_t<Stored> (&x)[VECTOR_LENGTH]) const {
    const int64 first = at * columns + column;
    if constexpr (ROW_VECTORS > 0) {
      epilogue.store(to, first, kept[v], x);
    } else {
      epilogue.store(to, first, epilogue.load<VECTOR_LENGTH>(first, column), x);
    }
  }
};

#endif
