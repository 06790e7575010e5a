// kernel   random_uniform(y, count, seedLow, seedHigh, offset, low, range, bits, last)
//            low + range · k / 2^bits, k the upper `bits` bits of a random word, and `last` for more; see random.cuh
#include "random.cuh"

extern "C" __global__ void random_uniform(Element* y, int64 count, uint32 seedLow, uint32 seedHigh, int64 offset,
                                          double low, double range, int bits, double last) {
  const double unit = __longlong_as_double(static_cast<int64>(1023 - bits) << 52);
  fill(y, count, seedLow, seedHigh, offset, [&](uint32 word) {
    const double x = madd(__dmul_rn(word >> (32 - bits), unit), range, low);
    return x > last ? last : x;
  });
}
