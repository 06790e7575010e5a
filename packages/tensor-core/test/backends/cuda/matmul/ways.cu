// The way in which each pair of blocks of these summaries is multiplied: 0 by row, 1 by line, 2 exactly.

#include "split_half.cuh"

extern "C" __global__ void ways(const unsigned* a, const unsigned* b, int* way) {
  way[threadIdx.x] = static_cast<int>(way_of(a[threadIdx.x], b[threadIdx.x]));
}
