// The mean cross entropy of logits against target classes, and its gradient.
//
// kernels  cross_entropy_rows(logits, targets, logSumExp, losses, rows, columns, ignored)
//            logSumExp = log Σ e^x of each row;  losses = logSumExp - x[target]; 0 where target = ignored,
//            NaN where it is out of range
//            grid ceil(rows / (BLOCK_THREADS / ROW_THREADS)), block BLOCK_THREADS
//          cross_entropy_mean(losses, targets, loss, inverseCount, rows, ignored)
//            inverseCount = 1 / rows that are not ignored;  loss = Σ losses · inverseCount
//            grid 1, block 1024
//          cross_entropy_backward(dloss, logits, targets, logSumExp, inverseCount, dlogits, rows, columns, ignored)
//            dlogits = (e^(x - logSumExp) - [column = target]) · dloss · inverseCount; times 0 in ignored rows
//            grid and block as cross_entropy_rows
//          logits, dlogits: ELEMENT [rows, columns]; targets: INDEX [rows]; the rest float, double for double
//          logits: dloss, loss, inverseCount one element, logSumExp, losses [rows].
//          rows and ignored int64, columns int32
//   macros those of row.cuh; INDEX
// Bound by memory: the logits are read once by each pass, and dlogits written once.
#include "log_sum_exp.cuh"

using Element = ELEMENT;
using Index = INDEX;
using C = compute_t<Element>;

constexpr int kMeanThreads = 1024;

__device__ __forceinline__ C not_a_number() { return lowest<C>() - lowest<C>(); }

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    cross_entropy_rows(const Element* logits, const Index* targets, C* logSumExp, C* losses, int64 rows, int columns,
                       int64 ignored) {
  const int64 at = first_row();
  if (at >= rows) return;
  Row<Element> row;
  row.load(logits + at * columns, columns);
  const ExpSum<C> statistics = exp_sum(row, columns);
  if (row_thread() != 0) return;
  const C total = statistics.shift + log(statistics.sum);
  const int64 target = targets[at];
  logSumExp[at] = total;
  if (target == ignored) {
    losses[at] = 0;
  } else if (target < 0 || target >= columns) {
    losses[at] = not_a_number();
  } else {
    losses[at] = total - to_compute(logits[at * columns + target]);
  }
}

extern "C" __global__ void __launch_bounds__(kMeanThreads)
    cross_entropy_mean(const C* losses, const Index* targets, C* loss, C* inverseCount, int64 rows, int64 ignored) {
  C sum = 0;
  int64 count = 0;
  for (int64 at = threadIdx.x; at < rows; at += kMeanThreads) {
    sum += losses[at];
    count += targets[at] != ignored;
  }
  sum = block_reduce<kMeanThreads>(sum, Sum{});
  count = block_reduce<kMeanThreads>(count, Sum{});
  if (threadIdx.x != 0) return;
  *inverseCount = C(1) / static_cast<C>(count);
  *loss = sum / static_cast<C>(count);
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    cross_entropy_backward(const C* dloss, const Element* logits, const Index* targets, const C* logSumExp,
                           const C* inverseCount, Element* dlogits, int64 rows, int columns, int64 ignored) {
  const int64 at = first_row();
  if (at >= rows) return;
  Row<Element> row;
  row.load(logits + at * columns, columns);
  const int64 target = targets[at];
  const C total = logSumExp[at];
  const bool inRange = target >= 0 && target < columns;
  const C scale = target == ignored ? C(0) : inRange ? *dloss * *inverseCount : not_a_number();
  for_each_vector(columns, [&](int column, int v) {
    C x[VECTOR_LENGTH];
    row.read(x, column, v);
#pragma unroll
    for (int i = 0; i < VECTOR_LENGTH; i++) {
      const C probability = exp(x[i] - total);
      x[i] = (column + i == target ? probability - C(1) : probability) * scale;
    }
    store_values(dlogits + at * columns + column, x);
  });
}
