// Looks up rows of a table by index.
//
// kernel   embedding(weight, ids, y, unitsPerRow, vocabulary)
//            y[n] = weight[ids[n]]; all bits set, a NaN of every floating-point dtype, where the id is out of range
//          weight, y: rows of unitsPerRow (int32) units of WORDS unsigned integers WORD; ids: INDEX; vocabulary int64
//            grid number of ids; any block
//   macros INDEX, WORD, WORDS
// Bound by memory: the rows named are read and y is written once.
#include "prelude.cuh"

using Index = INDEX;
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
