// Where each row of a table was read: the positions of its ids, in ascending order, found in linear time.
//
// kernel   embedding_sort(ids, ranges, keys, positions, count, vocabulary, passes, zeroes)
//            positions sorted by id and, within one id, ascending; ranges[row] = where row's positions begin and end,
//            left alone, or zeroed, where no id names the row. Ids out of range come last and belong to no range.
//          ids: INDEX [count]; ranges: int32 [vocabulary, 2], zeroed where `zeroes` is 0; keys and positions: int32
//          [2, count], of which an odd number of passes leaves the result in the first half, an even one in the second;
//          the rest int32
//          passes: as many as `vocabulary` has digits of 8 bits
//            grid 1; block 1024
//   macros INDEX
// A least-significant-digit radix sort by one block: each warp counts the digits of its share of the elements, and
// moves them after those of the warps before it, 32 at a time, so that equal digits keep their order. Nothing
// depends on timing: the same ids give the same order. Reads each id 2 · passes + 1 times.
#include "prelude.cuh"

using Index = INDEX;

constexpr int kThreads = 1024;
constexpr int kWarps = kThreads / 32;
constexpr int kDigitBits = 8;
constexpr int kDigits = 1 << kDigitBits;

/** The participating lanes of this warp whose digit equals this lane's. */
__device__ __forceinline__ unsigned lanes_of_digit(int digit, bool takesPart) {
  unsigned lanes = __ballot_sync(kFullWarp, takesPart);
#pragma unroll
  for (int bit = 0; bit < kDigitBits; bit++) {
    const bool isSet = digit >> bit & 1;
    const unsigned set = __ballot_sync(kFullWarp, isSet);
    lanes &= isSet ? set : ~set;
  }
  return lanes;
}

/** Turns counts[warp][digit], how often a digit occurs in each warp's share, into the position of the first of them. */
__device__ __forceinline__ void counts_to_places(int (&counts)[kWarps][kDigits]) {
  __shared__ int before[kDigits / 32];
  const int digit = threadIdx.x;
  const int lane = threadIdx.x % 32;
  int total = 0;
  if (digit < kDigits) {
    for (int warp = 0; warp < kWarps; warp++) {
      const int own = counts[warp][digit];
      counts[warp][digit] = total;
      total += own;
    }
  }
  int end = total;
  for (int distance = 1; distance < 32; distance *= 2) {
    const int left = __shfl_up_sync(kFullWarp, end, distance);
    if (lane >= distance) end += left;
  }
  if (lane == 31 && digit < kDigits) before[digit / 32] = end;
  __syncthreads();
  if (digit < kDigits) {
    int start = end - total;
    for (int warp = 0; warp < digit / 32; warp++) start += before[warp];
    for (int warp = 0; warp < kWarps; warp++) counts[warp][digit] += start;
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    embedding_sort(const Index* ids, Vector<int, 2>* ranges, int* keys, int* positions, int count, int vocabulary, int passes,
                   int zeroes) {
  __shared__ int counts[kWarps][kDigits];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int share = (count + kThreads - 1) / kThreads * 32;
  const int begin = warp * share;
  const int end = begin + share < count ? begin + share : count;
  if (zeroes != 0) {
    for (int row = threadIdx.x; row < vocabulary; row += kThreads) ranges[row] = {};
  }
  for (int pass = 0; pass < passes; pass++) {
    // The first pass reads the ids themselves, and each later one what the one before it wrote.
    const int64 from = static_cast<int64>(pass % 2 == 0 ? 1 : 0) * count;
    const int64 to = count - from;
    const auto key_at = [&](int at) {
      if (pass > 0) return keys[from + at];
      const int64 id = ids[at];
      return id >= 0 && id < vocabulary ? static_cast<int>(id) : vocabulary;
    };
    const auto digit_of = [&](int key) { return key >> (kDigitBits * pass) & (kDigits - 1); };
    for (int i = threadIdx.x; i < kWarps * kDigits; i += kThreads) counts[i / kDigits][i % kDigits] = 0;
    __syncthreads();
    for (int first = begin; first < end; first += 32) {
      const bool takesPart = first + lane < end;
      const int digit = takesPart ? digit_of(key_at(first + lane)) : 0;
      const unsigned same = lanes_of_digit(digit, takesPart);
      if (takesPart && lane == __ffs(same) - 1) counts[warp][digit] += __popc(same);
      __syncwarp();
    }
    __syncthreads();
    counts_to_places(counts);
    __syncthreads();
    for (int first = begin; first < end; first += 32) {
      const bool takesPart = first + lane < end;
      const int key = takesPart ? key_at(first + lane) : 0;
      const int digit = digit_of(key);
      const unsigned same = lanes_of_digit(digit, takesPart);
      if (takesPart) {
        const int place = counts[warp][digit] + __popc(same & ((1u << lane) - 1));
        keys[to + place] = key;
        positions[to + place] = pass > 0 ? positions[from + first + lane] : first + lane;
      }
      __syncwarp();
      if (takesPart && lane == __ffs(same) - 1) counts[warp][digit] += __popc(same);
      __syncwarp();
    }
    __syncthreads();
  }
  const int* sorted = keys + (passes % 2 == 0 ? count : 0);
  for (int i = threadIdx.x; i < count; i += kThreads) {
    const int key = sorted[i];
    if (key == vocabulary) continue;
    if (i == 0 || sorted[i - 1] != key) ranges[key][0] = i;
    if (i == count - 1 || sorted[i + 1] != key) ranges[key][1] = i + 1;
  }
}
