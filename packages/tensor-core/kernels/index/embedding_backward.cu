// The gradient of a table whose rows were looked up: dense, and the same bits every time.
//
// kernel   embedding_backward(dy, positions, ranges, dweight, columns)
//            dweight[row] = Σ dy[positions[i]] over the i in ranges[row], added in that order in float (double for
//            double); rows with an empty range are written as zeros. With ADDS, each sum, rounded as an element, is
//            added to what is there, and rows with an empty range stay as they are
//          dy: ELEMENT [any, columns], dweight: ELEMENT [vocabulary, columns]; positions: int32, ranges: int32
//          [vocabulary, 2], as embedding_sort.cu leaves them; columns int32
//            grid (vocabulary, ceil(columns / (block · VECTORS · VECTOR_LENGTH))); block: whole warps
//   macros ELEMENT, VECTOR_LENGTH, VECTORS, ADDS
// Bound by memory: dweight is written once (with ADDS only the rows that were looked up), and each row of dy read once.
#include "prelude.cuh"

using Element = ELEMENT;
using C = compute_t<Element>;

constexpr int kRowsAtOnce = 4;  // rows of dy loaded before they are added, to hide the latency

extern "C" __global__ void embedding_backward(const Element* dy, const int* positions, const Vector<int, 2>* ranges,
                                              Element* dweight, int columns) {
  const int64 firstColumn = (static_cast<int64>(blockIdx.y) * VECTORS * blockDim.x + threadIdx.x) * VECTOR_LENGTH;
  const int columnStep = blockDim.x * VECTOR_LENGTH;
  const Vector<int, 2> range = ranges[blockIdx.x];
  if (ADDS && range[0] == range[1]) return;
  C sums[VECTORS][VECTOR_LENGTH] = {};
  for (int i = range[0]; i < range[1]; i += kRowsAtOnce) {
    Vector<Element, VECTOR_LENGTH> rows[kRowsAtOnce][VECTORS] = {};
#pragma unroll
    for (int r = 0; r < kRowsAtOnce; r++) {
      if (i + r >= range[1]) break;
      const Element* row = dy + static_cast<int64>(positions[i + r]) * columns;
#pragma unroll
      for (int v = 0; v < VECTORS; v++) {
        const int64 column = firstColumn + v * columnStep;
        if (column < columns) rows[r][v] = load_vector<VECTOR_LENGTH>(row + column);
      }
    }
#pragma unroll
    for (int r = 0; r < kRowsAtOnce; r++) {
#pragma unroll
      for (int v = 0; v < VECTORS; v++) {
#pragma unroll
        for (int i = 0; i < VECTOR_LENGTH; i++) sums[v][i] += to_compute(rows[r][v][i]);
      }
    }
  }
#pragma unroll
  for (int v = 0; v < VECTORS; v++) {
    const int64 column = firstColumn + v * columnStep;
    if (column >= columns) continue;
    Element* target = dweight + static_cast<int64>(blockIdx.x) * columns + column;
    Vector<Element, VECTOR_LENGTH> result;
    if constexpr (ADDS) result = load_vector<VECTOR_LENGTH>(target);
#pragma unroll
    for (int i = 0; i < VECTOR_LENGTH; i++) {
      result[i] = convert<Element>(ADDS ? to_compute(result[i]) + as_stored<Element, C>(sums[v][i]) : sums[v][i]);
    }
    store_vector(target, result);
  }
}
