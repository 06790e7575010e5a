// Keeps the lower triangle of each matrix and fills the rest: tril, and the causal mask of attention scores.
//
// kernel   lower_triangle(x, y, matrices, rows, columns, diagonal, fill)
//            y[m, i, j] = j <= i + diagonal ? x[m, i, j] : fill
//          x, y: ELEMENT [matrices, rows, columns]; counts and diagonal int32, fill float32
//            grid (any, up to 65535); any block: x walks the elements of a matrix, y the matrices
//   macros ELEMENT; VECTOR_LENGTH: divides columns
// Bound by memory: y is written once, and x read once where it is kept.
#include "prelude.cuh"

using Element = ELEMENT;

extern "C" __global__ void lower_triangle(const Element* x, Element* y, int matrices, int rows, int columns,
                                          int diagonal, float fill) {
  const Element filling = convert<Element>(fill);
  const int vectorsPerRow = columns / VECTOR_LENGTH;
  const int vectors = rows * vectorsPerRow;
  for (int matrix = blockIdx.y; matrix < matrices; matrix += gridDim.y) {
    const int64 start = static_cast<int64>(matrix) * rows * columns;
    for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < vectors; at += gridDim.x * blockDim.x) {
      const int row = at / vectorsPerRow;
      const int column = (at - row * vectorsPerRow) * VECTOR_LENGTH;
      const int last = row + diagonal;
      Vector<Element, VECTOR_LENGTH> vector;
      if (column <= last) vector = load_vector<VECTOR_LENGTH>(x + start + static_cast<int64>(at) * VECTOR_LENGTH);
#pragma unroll
      for (int i = 0; i < VECTOR_LENGTH; i++) {
        if (column + i > last) vector[i] = filling;
      }
      store_vector(y + start + static_cast<int64>(at) * VECTOR_LENGTH, vector);
    }
  }
}
