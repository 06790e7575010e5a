// Zeroes random elements and scales the rest; the gradient does the same with the same seed and offset.
//
// kernel   dropout(x, y, count, seedLow, seedHigh, offset, threshold, scale)
//            y[i] = x[i] · (word i >= threshold ? scale : 0), so that NaN and infinities give NaN even where
//            they are zeroed. Word i is word i mod 4 of the block of counter offset + ⌊i / 4⌋ under the key `seed`.
//          x, y: ELEMENT [count]; count, offset and threshold int64, seed halves uint32, scale float64
//            any grid and block; a thread works on four elements
//   macros ELEMENT; VECTOR_LENGTH: of a load, 1, 2 or 4; x and y are aligned to it
// Bound by memory: each element is read once and written once.
#include "philox.cuh"

using Element = ELEMENT;
using C = compute_t<Element>;

extern "C" __global__ void dropout(const Element* x, Element* y, int64 count, uint32 seedLow, uint32 seedHigh,
                                   int64 offset, int64 threshold, double scale) {
  const C factor = static_cast<C>(scale);
  const int64 step = static_cast<int64>(gridDim.x) * blockDim.x;
  for (int64 block = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; block * 4 < count; block += step) {
    const Words words = philox(static_cast<uint64>(offset + block), seedLow, seedHigh);
    const auto factor_of = [&](int i) { return static_cast<int64>(words.values[i]) >= threshold ? factor : C(0); };
    const int64 first = block * 4;
    if (first + 4 <= count) {
#pragma unroll
      for (int v = 0; v < 4; v += VECTOR_LENGTH) {
        Vector<Element, VECTOR_LENGTH> vector = load_vector<VECTOR_LENGTH>(x + first + v);
#pragma unroll
        for (int i = 0; i < VECTOR_LENGTH; i++) vector[i] = convert<Element>(to_compute(vector[i]) * factor_of(v + i));
        store_vector(y + first + v, vector);
      }
    } else {
      for (int i = 0; first + i < count; i++) y[first + i] = convert<Element>(to_compute(x[first + i]) * factor_of(i));
    }
  }
}
