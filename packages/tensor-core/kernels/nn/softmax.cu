// softmax and logSoftmax along the last dimension, and their gradients; statistics in float (double for double).
//
// kernels  softmax(x, y, rows, columns)                 y = e^(x - max) / Σ e^(x - max)
//          log_softmax(x, y, rows, columns)             y = x - max - log Σ e^(x - max)
//          softmax_backward(dy, y, dx, rows, columns)      dx = y · (dy - Σ dy·y)
//          log_softmax_backward(dy, y, dx, rows, columns)  dx = dy - e^y · Σ dy
//          all pointers to ELEMENT, rows int64, columns int32
//   grid   ceil(rows / (BLOCK_THREADS / ROW_THREADS));   block BLOCK_THREADS;   no dynamic shared memory
//   macros those of row.cuh
// Bound by memory: each element is read once (twice by a row too long for registers) and written once.
#include "log_sum_exp.cuh"

using Element = ELEMENT;
using C = compute_t<Element>;

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    softmax(const Element* x, Element* y, int64 rows, int columns) {
  const int64 at = first_row();
  if (at >= rows) return;
  Row<Element> row;
  row.load(x + at * columns, columns);
  const ExpSum<C> denominator = exp_sum(row, columns);
  const C scale = C(1) / denominator.sum;
  for_each_vector(columns, [&](int column, int v) {
    C values[VECTOR_LENGTH];
    row.read(values, column, v);
#pragma unroll
    for (int i = 0; i < VECTOR_LENGTH; i++) values[i] = exp(values[i] - denominator.shift) * scale;
    store_values(y + at * columns + column, values);
  });
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

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    softmax_backward(const Element* dy, const Element* y, Element* dx, int64 rows, int columns) {
  const int64 at = first_row();
  if (at >= rows) return;
  Row<Element> gradient, output;
  gradient.load(dy + at * columns, columns);
  output.load(y + at * columns, columns);
  C dot = 0;
  for_each_vector(columns, [&](int column, int v) {
    C g[VECTOR_LENGTH], p[VECTOR_LENGTH];
    gradient.read(g, column, v);
    output.read(p, column, v);
#pragma unroll
    for (int i = 0; i < VECTOR_LENGTH; i++) dot += g[i] * p[i];
  });
  dot = row_sum(dot);
  for_each_vector(columns, [&](int column, int v) {
    C g[VECTOR_LENGTH], p[VECTOR_LENGTH];
    gradient.read(g, column, v);
    output.read(p, column, v);
#pragma unroll
    for (int i = 0; i < VECTOR_LENGTH; i++) g[i] = p[i] * (g[i] - dot);
    store_values(dx + at * columns + column, g);
  });
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
