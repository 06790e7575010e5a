// The gradients of rmsNorm and layerNorm; see norm.cu.
//
// kernel   norm_backward(dy, x, weight, mean, rstd, dx, partialWeight, partialBias, rows, columns, fusion)
//            dx = rstd · (ĝ - Σ ĝ / columns - x̂ · Σ ĝ·x̂ / columns),  ĝ = dy · weight,  x̂ = (x - mean) · rstd
//            Each group of ROW_THREADS takes every (grid · groups)-th row, and leaves its sums of dy·x̂ and dy in
//            its row of partialWeight and partialBias: [grid · BLOCK_THREADS / ROW_THREADS, columns] each, which
//            norm_fold.cu adds up.
//            grid up to ceil(rows / groups), block BLOCK_THREADS
//          x, dx: ELEMENT; dy: RESULT; weight: WEIGHT; the rest float, or double for double.
//          rows int64, columns int32
//          fusion: the prologue of dy and the epilogue of dx; see fusion.cuh
//   macros those of row.cuh; RESULT; WEIGHT; CENTERED: 1 for layerNorm, 0 for rmsNorm, whose mean and bias pointers are null
// Bound by memory: dy and x are read and dx written once.
#include "fused_row.cuh"

using Element = ELEMENT;
using Result = RESULT;
using Weight = WEIGHT;
using C = compute_t<Element>;
constexpr bool kCentered = CENTERED;

/** Column sums over the rows that one group of threads works on: in registers, or in memory for long rows. */
struct ColumnSums {
  C* address;
  C kept[ROW_VECTORS > 0 ? ROW_VECTORS : 1][VECTOR_LENGTH] = {};

  __device__ __forceinline__ void start(C* to, int columns) {
    address = to;
    if constexpr (ROW_VECTORS == 0) store(columns);
  }

  __device__ __forceinline__ void add(int column, int v, int i, C x) {
    if constexpr (ROW_VECTORS > 0) {
      kept[v][i] += x;
    } else {
      address[column + i] += x;
    }
  }

  __device__ __forceinline__ void finish(int columns) {
    if constexpr (ROW_VECTORS > 0) store(columns);
  }

  __device__ __forceinline__ void store(int columns) {
    for_each_vector(columns, [&](int column, int v) {
      constexpr int kLength = VECTOR_LENGTH < kVectorLength<C> ? VECTOR_LENGTH : kVectorLength<C>;
#pragma unroll
      for (int part = 0; part < VECTOR_LENGTH; part += kLength) {
        Vector<C, kLength> sums;
#pragma unroll
        for (int i = 0; i < kLength; i++) sums[i] = kept[v][part + i];
        store_vector(address + column + part, sums);
      }
    });
  }
};

/** What the gradient of a row needs besides its elements. */
struct RowStatistics {
  C mean, rstd;
};

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    norm_backward(const Result* dy, const Element* x, const Weight* weight, const C* mean, const C* rstd, Element* dx,
                  C* partialWeight, C* partialBias, int64 rows, int columns, const __grid_constant__ Fusion fusion) {
  const int64 group = first_row();
  const int64 step = static_cast<int64>(gridDim.x) * kRowsPerBlock;
  ColumnSums weightSums, biasSums;
  weightSums.start(partialWeight + group * columns, columns);
  if (kCentered) biasSums.start(partialBias + group * columns, columns);

  Row<Result> nextGradient;
  Row<Element> nextInput;
  RowStatistics next = {};
  const auto fetch = [&](int64 at) {
    if (at >= rows) return;
    load_row(nextGradient, dy, at, columns, fusion.prologue);
    nextInput.load(x + at * columns, columns);
    next = {kCentered ? mean[at] : C(0), rstd[at]};
  };
  fetch(group);
  // Groups that share a warp stay together to the end, because they reduce by shuffles of the whole warp.
  for (int64 at = group; at - threadIdx.x / kRowThreads < rows; at += step) {
    const Row<Result> gradient = nextGradient;
    const Row<Element> input = nextInput;
    const RowStatistics statistics = next;
    fetch(at + step);
    const int length = at < rows ? columns : 0;
    EpilogueRow epilogue;
    if (at < rows) epilogue.load(fusion.epilogue, at, columns);
    C sum = 0, dot = 0;
    for_each_vector(length, [&](int column, int v) {
      C g[VECTOR_LENGTH], normal[VECTOR_LENGTH];
      gradient.read(g, column, v);
      input.read(normal, column, v);
      Vector<Weight, VECTOR_LENGTH> w = load_vector<VECTOR_LENGTH>(weight + column);
#pragma unroll
      for (int i = 0; i < VECTOR_LENGTH; i++) {
        normal[i] = (normal[i] - statistics.mean) * statistics.rstd;
        weightSums.add(column, v, i, g[i] * normal[i]);
        if (kCentered) biasSums.add(column, v, i, g[i]);
        g[i] *= convert<C>(w[i]);
        sum += g[i];
        dot += g[i] * normal[i];
      }
    });
    dot = row_sum(dot) / columns;
    sum = kCentered ? row_sum(sum) / columns : C(0);
    for_each_vector(length, [&](int column, int v) {
      C g[VECTOR_LENGTH], normal[VECTOR_LENGTH];
      gradient.read(g, column, v);
      input.read(normal, column, v);
      Vector<Weight, VECTOR_LENGTH> w = load_vector<VECTOR_LENGTH>(weight + column);
#pragma unroll
      for (int i = 0; i < VECTOR_LENGTH; i++) {
        normal[i] = (normal[i] - statistics.mean) * statistics.rstd;
        g[i] = (g[i] * convert<C>(w[i]) - sum - normal[i] * dot) * statistics.rstd;
      }
      epilogue.store(fusion.epilogue, dx, at, columns, column, v, g);
    });
  }
  weightSums.finish(columns);
  if (kCentered) biasSums.finish(columns);
}
