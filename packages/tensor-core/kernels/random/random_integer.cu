// kernel   random_integer(y, count, seedLow, seedHigh, offset, low, range)
//            low + ⌊k · range / 2^32⌋; see random.cuh
#include "random.cuh"

extern "C" __global__ void random_integer(Element* y, int64 count, uint32 seedLow, uint32 seedHigh, int64 offset,
                                          double low, double range) {
  fill(y, count, seedLow, seedHigh, offset, [&](uint32 word) {
    return __dadd_rn(low, floor(__dmul_rn(__dmul_rn(word, range), kWordUnit)));
  });
}
