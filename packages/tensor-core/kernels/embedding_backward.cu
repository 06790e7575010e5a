// The gradient of a table of which rows were read: dense, and the same bits every time.
//
// kernel   embedding_backward(dy, ids, dweight, count, columns)
//            dweight[row] = Σ dy[n] over the n with ids[n] = row, added in ascending n in float (double for
//            double); rows that no id names are written as zeros
//          dy: ELEMENT [count, columns], dweight: ELEMENT [vocabulary, columns]; ids: INDEX [count]; count and
//          columns int32
//            grid (vocabulary, ceil(columns / (block · VECTORS · VECTOR_LENGTH))); block: whole warps
//   macros INDEX, ELEMENT, VECTOR_LENGTH, VECTORS
// Bound by memory: dweight is written and dy read once; each block reads all ids, which stay in the L1 cache.
#include "prelude.cuh"

using Element = ELEMENT;
using Index = INDEX;
using C = compute_t<Element>;

constexpr int kChunk = 1024;   // ids that are searched at once: a bit each in 32 words, one word for each lane
constexpr int kRowsAtOnce = 4; // rows of dy that are loaded before they are added, to hide the latency

struct Matches {
  unsigned words[kChunk / 32];
  int positions[kChunk];
  int count;
};

/** Marks where ids[first...] equals `id`. Returns whether it does anywhere, to every thread. */
__device__ __forceinline__ bool mark_matches(Matches& matches, const Index* ids, int first, int count, int64 id) {
  for (int i = threadIdx.x; i < kChunk; i += blockDim.x) {
    const unsigned word = __ballot_sync(kFullWarp, first + i < count && ids[first + i] == id);
    if (threadIdx.x % 32 == 0) matches.words[i / 32] = word;
  }
  __syncthreads();
  return __ballot_sync(kFullWarp, matches.words[threadIdx.x % 32] != 0) != 0;
}

/** Turns the marks into ascending positions; the first warp calls this. */
__device__ __forceinline__ void list_matches(Matches& matches, int first) {
  const int lane = threadIdx.x;
  unsigned word = matches.words[lane];
  int end = __popc(word);
  for (int distance = 1; distance < 32; distance *= 2) {
    const int before = __shfl_up_sync(kFullWarp, end, distance);
    if (lane >= distance) end += before;
  }
  if (lane == 31) matches.count = end;
  for (int slot = end - __popc(word); word != 0; slot++, word &= word - 1) {
    matches.positions[slot] = first + lane * 32 + __ffs(word) - 1;
  }
}

extern "C" __global__ void embedding_backward(const Element* dy, const Index* ids, Element* dweight, int count,
                                              int columns) {
  __shared__ Matches matches;
  const int firstColumn = (blockIdx.y * VECTORS * blockDim.x + threadIdx.x) * VECTOR_LENGTH;
  const int columnStep = blockDim.x * VECTOR_LENGTH;
  C sums[VECTORS][VECTOR_LENGTH] = {};
  for (int first = 0; first < count; first += kChunk) {
    const bool any = mark_matches(matches, ids, first, count, blockIdx.x);
    if (any && threadIdx.x < 32) list_matches(matches, first);
    __syncthreads();
    if (!any) continue;
    for (int match = 0; match < matches.count; match += kRowsAtOnce) {
      Vector<Element, VECTOR_LENGTH> rows[kRowsAtOnce][VECTORS] = {};
#pragma unroll
      for (int r = 0; r < kRowsAtOnce; r++) {
        if (match + r >= matches.count) break;
        const Element* row = dy + static_cast<int64>(matches.positions[match + r]) * columns;
#pragma unroll
        for (int v = 0; v < VECTORS; v++) {
          const int column = firstColumn + v * columnStep;
          if (column < columns) rows[r][v] = load_vector<VECTOR_LENGTH>(row + column);
        }
      }
#pragma unroll
      for (int r = 0; r < kRowsAtOnce; r++) {
#pragma unroll
        for (int v = 0; v < VECTORS; v++) {
#pragma unroll
          for (int i = 0; i < VECTOR_LENGTH; i++) sums[v][i] += to_compute(rows[r][v][i]);
        }
      }
    }
  }
#pragma unroll
  for (int v = 0; v < VECTORS; v++) {
    const int column = firstColumn + v * columnStep;
    if (column >= columns) continue;
    Vector<Element, VECTOR_LENGTH> result;
#pragma unroll
    for (int i = 0; i < VECTOR_LENGTH; i++) result[i] = convert<Element>(sums[v][i]);
    store_vector(dweight + static_cast<int64>(blockIdx.x) * columns + column, result);
  }
}
