// softmax and logSoftmax along the last dimension, and their gradients; statistics in float (double for double).
//
// kernels  softmax(x, y, rows, columns)                 y = e^(x - max) / Σ e^(x - max)
//          log_softmax(x, y, rows, columns)             y = x - max - log Σ e^(x - max)
//          softmax_backward(dy, y, dx, rows, columns)      dx = y · (dy - Σ dy·y)
//          log_softmax_backward(dy, y, dx, rows, columns)  dx = dy - e^y · Σ dy
//          causal_softmax(x, y, rows, columns, queries), causal_softmax_backward(dy, y, dx, rows, columns, queries)
//             softmax of matrices of `queries` rows, of which row i sees the columns j <= i + columns - queries: others count as
//             -inf, have no gradient, and are not read
//          all pointers to ELEMENT, rows int64, columns and queries int32
//   grid   ceil(rows / (BLOCK_THREADS / ROW_THREADS));   block BLOCK_THREADS;   no dynamic shared memory
//   macros those of row.cuh
// Bound by memory: each element is read once (twice by a row too long for registers) and written once; of a causal row those
// that it sees are read.
#include "log_sum_exp.cuh"

using Element = ELEMENT;
using C = compute_t<Element>;

/**
 * A row of which the first `seen` elements count: the others of the last vector that holds one are `hidden`, and vectors after it are
 * not to be read. In their place the first one of the row is loaded, which is there already: loads that depend on a condition, or come
 * after one, would wait for each other.
 */
struct SeenRow : Row<Element> {
  int seen;
  Element hidden;

  __device__ __forceinline__ void load(const Element* from, int length, int first, C others) {
    address = from;
    columns = length;
    seen = first;
    hidden = convert<Element>(others);
    if constexpr (ROW_VECTORS > 0) {
      for_each_vector(columns, [&](int column, int v) {
        kept[v] = load_vector<VECTOR_LENGTH>(address + (column < seen ? column : 0));
      });
      for_each_vector(seen, [&](int column, int v) { hide(kept[v], column); });
    }
  }

  __device__ __forceinline__ void read(C (&x)[VECTOR_LENGTH], int column, int v) const {
    Vector<Element, VECTOR_LENGTH> vector = kept[v];
    if constexpr (ROW_VECTORS == 0) {
      vector = load_vector<VECTOR_LENGTH>(address + column);
      hide(vector, column);
    }
#pragma unroll
    for (int i = 0; i < VECTOR_LENGTH; i++) x[i] = to_compute(vector[i]);
  }

  __device__ __forceinline__ void hide(Vector<Element, VECTOR_LENGTH>& vector, int column) const {
    if (column + VECTOR_LENGTH <= seen) return;
#pragma unroll
    for (int i = 0; i < VECTOR_LENGTH; i++) {
      if (column + i >= seen) vector[i] = hidden;
    }
  }
};

/** The columns that a row of matrices of `queries` rows sees; none where there are more queries than columns. */
__device__ __forceinline__ int seen_columns(int64 row, int columns, int queries) {
  return max(static_cast<int>(row % queries) + 1 + columns - queries, 0);
}

/** y of a loaded row: `statistics` are of the first `seen` elements, which alone count. */
template <typename AnyRow>
__device__ __forceinline__ void store_softmax(const AnyRow& row, ExpSum<C> statistics, Element* y, int columns, int seen) {
  const C scale = C(1) / statistics.sum;
  for_each_vector(columns, [&](int column, int v) {
    C values[VECTOR_LENGTH] = {};
    if (column < seen) {
      row.read(values, column, v);
#pragma unroll
      for (int i = 0; i < VECTOR_LENGTH; i++) values[i] = exp(values[i] - statistics.shift);
    }
    // NaN where nothing counts.
#pragma unroll
    for (int i = 0; i < VECTOR_LENGTH; i++) values[i] *= scale;
    store_values(y + column, values);
  });
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    softmax(const Element* x, Element* y, int64 rows, int columns) {
  const int64 at = first_row();
  if (at >= rows) return;
  Row<Element> row;
  row.load(x + at * columns, columns);
  store_softmax(row, exp_sum(row, columns), y + at * columns, columns, columns);
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    causal_softmax(const Element* x, Element* y, int64 rows, int columns, int queries) {
  const int64 at = first_row();
  if (at >= rows) return;
  SeenRow row;
  row.load(x + at * columns, columns, seen_columns(at, columns, queries), lowest<C>());
  store_softmax(row, exp_sum(row, row.seen), y + at * columns, columns, row.seen);
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    log_softmax(const Element* x, Element* y, int64 rows, int columns) {
  const int64 at = first_row();
  if (at >= rows) return;
  Row<Element> row;
  row.load(x + at * columns, columns);
  const ExpSum<C> denominator = exp_sum(row, columns);
  const C logSum = log(denominator.sum);
  for_each_vector(columns, [&](int column, int v) {
    C values[VECTOR_LENGTH];
    row.read(values, column, v);
#pragma unroll
    for (int i = 0; i < VECTOR_LENGTH; i++) values[i] = values[i] - denominator.shift - logSum;
    store_values(y + at * columns + column, values);
  });
}

/** dx of loaded rows, of which the elements from `seen` on have no gradient. */
template <typename AnyRow>
__device__ __forceinline__ void store_gradient(const AnyRow& gradient, const AnyRow& output, Element* dx, int columns,
                                               int seen) {
  C dot = 0;
  for_each_vector(seen, [&](int column, int v) {
    C g[VECTOR_LENGTH], p[VECTOR_LENGTH];
    gradient.read(g, column, v);
    output.read(p, column, v);
#pragma unroll
    for (int i = 0; i < VECTOR_LENGTH; i++) dot += g[i] * p[i];
  });
  dot = row_sum(dot);
  for_each_vector(columns, [&](int column, int v) {
    C g[VECTOR_LENGTH] = {}, p[VECTOR_LENGTH];
    if (column < seen) {
      gradient.read(g, column, v);
      output.read(p, column, v);
#pragma unroll
      for (int i = 0; i < VECTOR_LENGTH; i++) g[i] = column + i < seen ? p[i] * (g[i] - dot) : C(0);
    }
    store_values(dx + column, g);
  });
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    softmax_backward(const Element* dy, const Element* y, Element* dx, int64 rows, int columns) {
  const int64 at = first_row();
  if (at >= rows) return;
  Row<Element> gradient, output;
  gradient.load(dy + at * columns, columns);
  output.load(y + at * columns, columns);
  store_gradient(gradient, output, dx + at * columns, columns, columns);
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    causal_softmax_backward(const Element* dy, const Element* y, Element* dx, int64 rows, int columns, int queries) {
  const int64 at = first_row();
  if (at >= rows) return;
  const int seen = seen_columns(at, columns, queries);
  SeenRow gradient, output;
  gradient.load(dy + at * columns, columns, seen, C(0));
  output.load(y + at * columns, columns, seen, C(0));
  store_gradient(gradient, output, dx + at * columns, columns, seen);
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    log_softmax_backward(const Element* dy, const Element* y, Element* dx, int64 rows, int columns) {
  const int64 at = first_row();
  if (at >= rows) return;
  Row<Element> gradient;
  gradient.load(dy + at * columns, columns);
  C total = 0;
  for_each_vector(columns, [&](int column, int v) {
    C g[VECTOR_LENGTH];
    gradient.read(g, column, v);
#pragma unroll
    for (int i = 0; i < VECTOR_LENGTH; i++) total += g[i];
  });
  total = row_sum(total);
  for_each_vector(columns, [&](int column, int v) {
    C g[VECTOR_LENGTH], p[VECTOR_LENGTH];
    gradient.read(g, column, v);
    load_values(p, y + at * columns + column);
#pragma unroll
    for (int i = 0; i < VECTOR_LENGTH; i++) g[i] -= exp(p[i]) * total;
    store_values(dx + at * columns + column, g);
  });
}
