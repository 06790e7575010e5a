// rmsNorm (Zhang & Sennrich 2019) and layerNorm (Ba et al. 2016) along the last dimension. Statistics are in float, in double
// for double.
//
// kernel   norm_forward(x, weight, bias, y, mean, rstd, rows, columns, eps, fusion)
//            x̂ = (x - mean) · rstd,  y = x̂ · weight + bias;   rstd = 1 / √(Σ (x - mean)² / columns + eps)
//            grid ceil(rows / (BLOCK_THREADS / ROW_THREADS)), block BLOCK_THREADS
//          x: ELEMENT; y: RESULT; weight and bias: WEIGHT; the rest float, or double for double
//          rows int64, columns int32, eps float64
//          fusion: the prologue of x and the epilogue of y; see fusion.cuh
//   macros those of row.cuh; RESULT; WEIGHT; CENTERED: 1 for layerNorm, 0 for rmsNorm, whose mean and bias pointers are null
// Bound by memory: x is read and y written once.
#include "fused_row.cuh"

using Element = ELEMENT;
using Result = RESULT;
using Weight = WEIGHT;
using C = compute_t<Element>;
constexpr bool kCentered = CENTERED;

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    norm_forward(const Element* x, const Weight* weight, const Weight* bias, Result* y, C* mean, C* rstd,
                 int64 rows, int columns, double eps, const __grid_constant__ Fusion fusion) {
  const int64 at = first_row();
  if (at >= rows) return;
  Row<Element> row;
  load_row(row, x, at, columns, fusion.prologue);
  EpilogueRow epilogue;
  epilogue.load(fusion.epilogue, at, columns);
  C center = 0;
  if (kCentered) {
    for_each_vector(columns, [&](int column, int v) {
      C values[VECTOR_LENGTH];
      row.read(values, column, v);
#pragma unroll
      for (int i = 0; i < VECTOR_LENGTH; i++) center += values[i];
    });
    center = row_sum(center) / columns;
  }
  C squares = 0;
  for_each_vector(columns, [&](int column, int v) {
    C values[VECTOR_LENGTH];
    row.read(values, column, v);
#pragma unroll
    for (int i = 0; i < VECTOR_LENGTH; i++) squares += (values[i] - center) * (values[i] - center);
  });
  const C variance = row_sum(squares) / columns + static_cast<C>(eps);
  // An overflow gives NaN, by Infinity · 0, rather than a scale of 0 that would look like a result.
  const C scale = kCentered ? C(1) / sqrt(variance) + C(0) * variance : C(1) / sqrt(variance);
  if (row_thread() == 0) {
    if (kCentered) mean[at] = center;
    rstd[at] = scale;
  }
  for_each_vector(columns, [&](int column, int v) {
    C values[VECTOR_LENGTH];
    row.read(values, column, v);
    Vector<Weight, VECTOR_LENGTH> w = load_vector<VECTOR_LENGTH>(weight + column);
#pragma unroll
    for (int i = 0; i < VECTOR_LENGTH; i++) values[i] = (values[i] - center) * scale * convert<C>(w[i]);
    if (kCentered) {
      Vector<Weight, VECTOR_LENGTH> b = load_vector<VECTOR_LENGTH>(bias + column);
#pragma unroll
      for (int i = 0; i < VECTOR_LENGTH; i++) values[i] += convert<C>(b[i]);
    }
    epilogue.store(fusion.epilogue, y, at, columns, column, v, values);
  });
}
