// The statistics of a row that softmax, logSoftmax and cross entropy share.
#ifndef ROOFLINE_LOG_SUM_EXP_CUH
#define ROOFLINE_LOG_SUM_EXP_CUH

#include "row.cuh"

/** log Σ e^x of a row is shift + log(sum); the shift is the largest element, or 0 where that is -inf. */
template <typename C>
struct ExpSum {
  C shift;
  C sum;
};

// Avoids -inf - -inf in rows that begin with, or consist of, -inf.
template <typename C>
__device__ __forceinline__ C finite_shift(C largest) {
  return largest == lowest<C>() ? C(0) : largest;
}

/** In one pass: a thread rescales its sum when its maximum grows (Milakov & Gimelshein 2018). */
template <typename AnyRow>
__device__ __forceinline__ ExpSum<typename AnyRow::C> exp_sum(const AnyRow& row, int columns) {
  using C = typename AnyRow::C;
  C largest = lowest<C>();
  C sum = 0;
  for_each_vector(columns, [&](int column, int v) {
    C x[VECTOR_LENGTH];
    row.read(x, column, v);
    C next = largest;
#pragma unroll
    for (int i = 0; i < VECTOR_LENGTH; i++) next = x[i] > next ? x[i] : next;
    const C shift = finite_shift(next);
    sum *= exp(largest - shift);
#pragma unroll
    for (int i = 0; i < VECTOR_LENGTH; i++) sum += exp(x[i] - shift);
    largest = next;
  });
  const C shift = finite_shift(row_reduce(largest, Larger{}));
  return {shift, row_sum(sum * exp(largest - shift))};
}

#endif
