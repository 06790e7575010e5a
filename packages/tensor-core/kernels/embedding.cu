// Rows of a table by their numbers, and the gradient of the table.
//
// kernels  embedding(weight, ids, y, unitsPerRow, vocabulary)
//            y[n] = weight[ids[n]], copied in units of WORDS unsigned integers WORD; all bits set,
//            a NaN of every floating-point dtype, where the id is out of range.   weight, y: rows of unitsPerRow (int32) units; vocabulary int64
//            grid number of ids; any block
//          embedding_backward(dy, ids, dweight, count, columns)
//            dweight[row] = Σ dy[n] over the n with ids[n] = row, added in ascending n in float (double for
//            double): the same bits every time, and rows that no id names are written as zeros
//            dy: ELEMENT [count, columns], dweight: ELEMENT [vocabulary, columns]; count and columns int32
//            grid (vocabulary, ceil(columns / (block · VECTORS · VECTOR_LENGTH))); block: whole warps
//   macros embedding: INDEX, WORD, WORDS;   embedding_backward: INDEX, ELEMENT, VECTOR_LENGTH, VECTORS
// Bound by memory: the rows named are read, and every row of y or dweight is written once.
#include "prelude.cuh"

using Index = INDEX;

#ifdef WORD

using Unit = Vector<WORD, WORDS>;

extern "C" __global__ void embedding(const Unit* weight, const Index* ids, Unit* y, int unitsPerRow,
                                     int64 vocabulary) {
  const int64 id = ids[blockIdx.x];
  const bool inRange = id >= 0 && id < vocabulary;
  const Unit* source = weight + (inRange ? id * unitsPerRow : 0);
  Unit* target = y + static_cast<int64>(blockIdx.x) * unitsPerRow;
  for (int unit = threadIdx.x; unit < unitsPerRow; unit += blockDim.x) {
    Unit value;
    if (inRange) {
      value = source[unit];
    } else {
#pragma unroll
      for (int i = 0; i < WORDS; i++) value[i] = static_cast<WORD>(~0u);
    }
    target[unit] = value;
  }
}

#else

using Element = ELEMENT;
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
  unsigned any = 0;
  for (int i = threadIdx.x; i < kChunk; i += blockDim.x) {
    const unsigned word = __ballot_sync(kFullWarp, first + i < count && ids[first + i] == id);
    if (threadIdx.x % 32 == 0) matches.words[i / 32] = word;
    any |= word;
  }
  return __syncthreads_or(any);
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
    if (!mark_matches(matches, ids, first, count, blockIdx.x)) continue;
    if (threadIdx.x < 32) list_matches(matches, first);
    __syncthreads();
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
    __syncthreads();
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

#endif
