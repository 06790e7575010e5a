// Keeps the lower triangle of each matrix and fills the rest: tril, and the causal mask of attention scores.
//
// kernel   lower_triangle(x, y, matrices, rows, columns, diagonal, fill)
//            y[m, i, j] = j <= i + diagonal ? x[m, i, j] : fill
//          x, y: ELEMENT [matrices, rows, columns]; matrices int64, rows, columns and diagonal int32, fill float32
//            grid (any, up to 65535); any block: x walks the elements of a matrix, y the matrices
//   macros ELEMENT; VECTOR_LENGTH: divides columns; OFFSET: holds rows · columns and a step of the grid beyond
// Bound by memory: y is written once, and x read once where it is kept.
#include "prelude.cuh"

using Element = ELEMENT;
using Offset = OFFSET;

extern "C" __global__ void lower_triangle(const Element* x, Element* y, int64 matrices, int rows, int columns,
                                          int diagonal, float fill) {
  const Element filling = convert<Element>(fill);
  const int vectorsPerRow = columns / VECTOR_LENGTH;
  const Offset vectors = static_cast<Offset>(rows) * vectorsPerRow;
  const Offset step = static_cast<Offset>(gridDim.x) * blockDim.x;
  for (int64 matrix = blockIdx.y; matrix < matrices; matrix += gridDim.y) {
    const int64 start = matrix * rows * columns;
    for (Offset at = static_cast<Offset>(blockIdx.x) * blockDim.x + threadIdx.x; at < vectors; at += step) {
      const int row = at / vectorsPerRow;
      const int column = (at - static_cast<Offset>(row) * vectorsPerRow) * VECTOR_LENGTH;
      const int64 last = static_cast<int64>(row) + diagonal;
      const int64 place = start + static_cast<int64>(at) * VECTOR_LENGTH;
      Vector<Element, VECTOR_LENGTH> vector;
      if (column <= last) vector = load_vector<VECTOR_LENGTH>(x + place);
#pragma unroll
      for (int i = 0; i < VECTOR_LENGTH; i++) {
        if (column + i > last) vector[i] = filling;
      }
      store_vector(y + place, vector);
    }
  }
}
