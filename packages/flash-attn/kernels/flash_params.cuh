// What every family of attention kernels is given, and which queries see which keys.
//
// ELEMENT, a macro, is the storage type of q, k, v, o and their gradients: float, double, float16 or bfloat16. The
// log-sum-exp and what is accumulated are of compute_t<ELEMENT>: double for double, else float.
//
// FlashParams, 328 bytes, passed by value; src/cuda/flash-params.ts writes it. Strides count elements; a row's
// elements lie densely. Pointers that a kernel does not use are null.
//   0    q         const ELEMENT*  [batch][heads][queries][headDim]
//   8    k         const ELEMENT*  [batch][keyHeads][keys][headDim]
//   16   v         const ELEMENT*  likewise
//   24   o         ELEMENT*        as q
//   32   lse       Accumulator*    [batch][heads][queries], dense: natural log of Σ exp(scale · q·k); -inf for a row
//                                  that sees no key
//   40   gradO     const ELEMENT*  as o
//   48   gradLse   const Accumulator*  as lse, or null: the gradient of lse
//   56   delta     Accumulator*    as lse: rowsum(gradO ∘ o) - gradLse, from flash_delta
//   64   gradQ     ELEMENT*        as q
//   72   gradK     ELEMENT*        as k
//   80   gradV     ELEMENT*        as v
//   88   qStrides      int64[3]    of batch, head and row
//   112  kStrides      int64[3]
//   136  vStrides      int64[3]
//   160  oStrides      int64[3]
//   184  gradOStrides  int64[3]
//   208  gradQStrides  int64[3]
//   232  gradKStrides  int64[3]
//   256  gradVStrides  int64[3]
//   280  statistics  Accumulator*  [batch][heads][queries][2], dense, or null: the largest score of a row, 0 where that is
//                                  -inf, and Σ exp(score - largest), 1 where that is 0. lse is both in one, but off by
//                                  its rounding, of which exp(score - lse) is then off as well. Null in low precision
//   288  batch         int32
//   292  heads         int32       a multiple of keyHeads: heads/keyHeads neighbours share a head of k and v
//   296  keyHeads      int32
//   300  queries       int32
//   304  keys          int32
//   308  headDim       int32       at most HEAD_DIM
//   312  scale         float64
//   320  causal        int32       query i sees the keys j <= i + keys - queries: the last one sees them all
//   324  (padding to 328)
#ifndef ROOFLINE_FLASH_PARAMS_CUH
#define ROOFLINE_FLASH_PARAMS_CUH

#include "prelude.cuh"

using Accumulator = compute_t<ELEMENT>;

struct FlashStrides {
  int64 batch, head, row;
};

struct FlashParams {
  const ELEMENT *q, *k, *v;
  ELEMENT* o;
  Accumulator* lse;
  const ELEMENT* gradO;
  const Accumulator* gradLse;
  Accumulator* delta;
  ELEMENT *gradQ, *gradK, *gradV;
  FlashStrides qStrides, kStrides, vStrides, oStrides, gradOStrides, gradQStrides, gradKStrides, gradVStrides;
  Accumulator* statistics;
  int32 batch, heads, keyHeads, queries, keys, headDim;
  double scale;
  int32 causal;
};
static_assert(sizeof(FlashParams) == 328, "as the host writes it");

/** Whether this query sees this key; no query or key after the last does. */
__device__ __forceinline__ bool is_visible(const FlashParams& p, int query, int key) {
  return query < p.queries && key < p.keys && (!p.causal || key <= query + p.keys - p.queries);
}

/** The keys below this one are all that a query, and those before it, can see. */
__device__ __forceinline__ int visible_keys(const FlashParams& p, int query) {
  if (!p.causal) return p.keys;
  const int end = query + 1 + p.keys - p.queries;
  return end < 0 ? 0 : end < p.keys ? end : p.keys;
}

/** The queries from this one on are all that can see a key, or one after it. */
__device__ __forceinline__ int first_query(const FlashParams& p, int key) {
  const int first = key - (p.keys - p.queries);
  return p.causal && first > 0 ? first : 0;
}

/** Where the rows of one head of one batch entry begin. */
template <typename T>
__device__ __forceinline__ T* head_of(T* tensor, const FlashStrides& strides, int batch, int head) {
  return tensor + batch * strides.batch + head * strides.head;
}

/** Where a head's rows begin in lse, gradLse and delta. */
__device__ __forceinline__ int64 row_offset(const FlashParams& p, int batch, int head) {
  return (static_cast<int64>(batch) * p.heads + head) * p.queries;
}

// Keeps -inf - -inf away from rows that see no key, or only keys whose score is -inf: their weights are 0.
__device__ __forceinline__ Accumulator finite_shift(Accumulator x) {
  return x == lowest<Accumulator>() ? Accumulator(0) : x;
}

#endif
