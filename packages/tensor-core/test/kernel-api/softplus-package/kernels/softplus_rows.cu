// y = scale · log(1 + exp(x)), row by row; and each row's largest value.
#include "row.cuh"

using Element = ELEMENT;
using C = compute_t<Element>;

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    softplus_rows(const Element* x, Element* y, Element* largest, int64 rows, int columns, float scale) {
  for (int64 row = first_row(); row < rows; row += static_cast<int64>(gridDim.x) * kRowsPerBlock) {
    Row<Element> values;
    values.load(x + row * columns, columns);
    C most = lowest<C>();
    for_each_vector(columns, [&](int column, int v) {
      C part[VECTOR_LENGTH];
      values.read(part, column, v);
#pragma unroll
      for (int i = 0; i < VECTOR_LENGTH; i++) {
        part[i] = static_cast<C>(scale) * log(static_cast<C>(1) + exp(part[i]));
        most = larger(most, part[i]);
      }
      store_values<VECTOR_LENGTH, Element>(y + row * columns + column, part);
    });
    most = row_reduce(most, Larger{});
    if (row_thread() == 0) largest[row] = convert<Element>(most);
  }
}
