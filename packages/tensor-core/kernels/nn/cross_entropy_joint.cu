// The mean cross entropy of logits against target classes and its gradient at once: the bits that cross_entropy.cu gives in
// two passes over the logits, in one.
//
// kernels  cross_entropy_count(targets, counts, finished, rows, ignored)
//            counts = {1 / n, n}, n the rows that are not ignored;  finished = 0
//            grid 1, block 1024
//          cross_entropy_joint(dloss, factor, logits, targets, scale, count, losses, finished, loss, dlogits, rows, columns, ignored)
//            dlogits = (e^(x - log Σ e^x) - [column = target]) · dloss · scale; times 0 in ignored rows
//            loss = Σ losses / count, which the block that finishes last adds up;  losses: log Σ e^x - x[target] of each row
//            grid ceil(rows / (BLOCK_THREADS / ROW_THREADS)), block BLOCK_THREADS
//          dloss is one element, or null for `factor` in its place; scale and count are one element, count null for 1
//          finished is 0 before. dlogits may be the logits: a thread overwrites only what it alone reads from then on
//          logits: ELEMENT, dlogits: RESULT [rows, columns]; targets: INDEX [rows]; finished uint32; the rest float, double for double
//          rows and ignored int64, columns int32
//   macros those of row.cuh, whose plan is that of the elements that the loss is defined for; RESULT; INDEX; STAGED: a row too long for registers is kept in dynamic shared memory, columns elements
// Bound by memory: the logits are read and dlogits written once; read twice where they fit neither registers nor shared memory.
#include "log_sum_exp.cuh"

using Element = ELEMENT;
using Result = RESULT;
using Index = INDEX;
using C = compute_t<Element>;

// Sums in the order of cross_entropy_mean.
constexpr int kMeanThreads = 1024;

__device__ __forceinline__ C not_a_number() { return lowest<C>() - lowest<C>(); }

extern "C" __global__ void __launch_bounds__(kMeanThreads)
    cross_entropy_count(const Index* targets, C* counts, unsigned* finished, int64 rows, int64 ignored) {
  int64 count = 0;
  for (int64 at = threadIdx.x; at < rows; at += kMeanThreads) count += targets[at] != ignored;
  count = block_reduce<kMeanThreads>(count, Sum{});
  if (threadIdx.x != 0) return;
  counts[0] = C(1) / static_cast<C>(count);
  counts[1] = static_cast<C>(count);
  *finished = 0;
}

/** The sum of what all blocks have written, as a block of kMeanThreads would add it. */
__device__ __forceinline__ C sum_of_losses(const volatile C* losses, int64 rows) {
  __shared__ C ofWarps[kMeanThreads / 32];
  for (int first = 0; first < kMeanThreads; first += kBlockThreads) {
    C sum = 0;
    for (int64 at = first + threadIdx.x; at < rows; at += kMeanThreads) sum += losses[at];
    sum = warp_reduce(sum, Sum{});
    if (threadIdx.x % 32 == 0) ofWarps[(first + threadIdx.x) / 32] = sum;
  }
  __syncthreads();
  return warp_reduce(ofWarps[threadIdx.x % 32], Sum{});
}

/** Loads a row; one too long for registers goes to shared memory, where each thread reads back what it has put there. */
__device__ __forceinline__ void load_row(Row<Element>& row, const Element* from, int columns) {
#if STAGED
  extern __shared__ __align__(16) ELEMENT staged[];
  for_each_vector(columns, [&](int column, int) {
    store_vector(staged + column, load_vector<VECTOR_LENGTH>(from + column));
  });
  row.load(staged, columns);
#else
  row.load(from, columns);
#endif
}

/** Where several rows share a warp, threads without a row of their own repeat the last one and write nothing. */
__device__ __forceinline__ void work_on_row(const C* dloss, C factor, const Element* logits, const Index* targets,
                                            const C* gradientScale, C* losses, Result* dlogits, int64 at,
                                            bool isOwn, int columns, int64 ignored) {
  const Element* from = logits + at * columns;
  Row<Element> row;
  load_row(row, from, columns);
  const int64 target = targets[at];
  const bool inRange = target >= 0 && target < columns;
  // Before another thread can have overwritten it.
  const C chosen = inRange ? to_compute(from[target]) : not_a_number();
  const ExpSum<C> statistics = exp_sum(row, columns);
  const C total = kept_apart(statistics.shift + log(statistics.sum));
  if (isOwn && row_thread() == 0) {
    losses[at] = target == ignored ? C(0) : total - chosen;
    __threadfence();
  }
  __syncthreads();
  const C above = dloss == nullptr ? factor : *dloss;
  const C scale = target == ignored ? C(0) : inRange ? above * *gradientScale : not_a_number();
  for_each_vector(columns, [&](int column, int v) {
    C x[VECTOR_LENGTH];
    row.read(x, column, v);
#pragma unroll
    for (int i = 0; i < VECTOR_LENGTH; i++) {
      const C probability = exp(x[i] - total);
      x[i] = (column + i == target ? probability - C(1) : probability) * scale;
    }
    if (isOwn) store_values(dlogits + at * columns + column, x);
  });
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    cross_entropy_joint(const C* dloss, double factor, const Element* logits, const Index* targets, const C* scale,
                        const C* count, C* losses, unsigned* finished, C* loss, Result* dlogits, int64 rows,
                        int columns, int64 ignored) {
  const int64 at = first_row();
  const bool isOwn = at < rows;
  work_on_row(dloss, static_cast<C>(factor), logits, targets, scale, losses, dlogits, isOwn ? at : rows - 1, isOwn,
              columns, ignored);
  __shared__ bool isLast;
  __syncthreads();
  if (threadIdx.x == 0) isLast = atomicAdd(finished, 1u) == gridDim.x - 1;
  __syncthreads();
  if (!isLast) return;
  __threadfence();
  const C sum = sum_of_losses(losses, rows);
  if (threadIdx.x == 0) *loss = count == nullptr ? sum : sum / *count;
}
