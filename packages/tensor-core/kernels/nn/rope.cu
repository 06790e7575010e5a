// Rotary position embedding (Su et al. 2021) of interleaved pairs, of one tensor or of two with the same layout.
//
// kernel   rope(x0, x1, cosine, sine, y0, y1, shape and strides, sign)
//            (y[2i], y[2i+1]) = (x[2i]·c - x[2i+1]·s, x[2i]·s + x[2i+1]·c), c = cosine[t, i], s = sign·sine[t, i];
//            sign -1 turns back, which is the gradient
//          x0, x1: ELEMENT [n0, n1, n2, length, columns] with strides s0, s1, s2, s3 (int64, elements) and 1;
//          y0, y1: the same with strides t0, t1, t2, t3 and 1; cosine, sine: float [length, columns / 2]; lengths
//          int32, sign float32
//            grid (any, up to 65535, tensors); any block: x walks the elements of [length, columns], y the matrices,
//            z the tensors; a grid of one works on the first only
//   macros ELEMENT; VECTOR_LENGTH: even, divides columns and all strides; OFFSET: holds n0 · n1 · n2 and
//          length · columns, and a step of the grid beyond
// Bound by memory: x is read and y written once; the tables stay in the caches.
#include "prelude.cuh"

using Element = ELEMENT;
using C = compute_t<Element>;
using Offset = OFFSET;

extern "C" __global__ void rope(const Element* x0, const Element* x1, const float* cosine, const float* sine,
                                Element* y0, Element* y1, int n0, int n1, int n2, int length, int columns, int64 s0,
                                int64 s1, int64 s2, int64 s3, int64 t0, int64 t1, int64 t2, int64 t3, float sign) {
  constexpr int kPairs = VECTOR_LENGTH / 2;
  const Element* x = blockIdx.z == 0 ? x0 : x1;
  Element* y = blockIdx.z == 0 ? y0 : y1;
  const int vectorsPerRow = columns / VECTOR_LENGTH;
  const Offset matrices = static_cast<Offset>(n0) * n1 * n2;
  const Offset vectors = static_cast<Offset>(length) * vectorsPerRow;
  const Offset step = static_cast<Offset>(gridDim.x) * blockDim.x;
  for (Offset matrix = blockIdx.y; matrix < matrices; matrix += gridDim.y) {
    const int i2 = matrix % n2;
    const int i1 = matrix / n2 % n1;
    const int i0 = matrix / n2 / n1;
    const Element* source = x + i0 * s0 + i1 * s1 + i2 * s2;
    Element* target = y + i0 * t0 + i1 * t1 + i2 * t2;
    for (Offset at = static_cast<Offset>(blockIdx.x) * blockDim.x + threadIdx.x; at < vectors; at += step) {
      const int t = at / vectorsPerRow;
      const int column = (at - static_cast<Offset>(t) * vectorsPerRow) * VECTOR_LENGTH;
      const int64 pair = static_cast<int64>(at) * kPairs;
      const Vector<Element, VECTOR_LENGTH> in = load_vector<VECTOR_LENGTH>(source + t * s3 + column);
      const Vector<float, kPairs> c = load_vector<kPairs>(cosine + pair);
      const Vector<float, kPairs> s = load_vector<kPairs>(sine + pair);
      Vector<Element, VECTOR_LENGTH> out;
#pragma unroll
      for (int i = 0; i < kPairs; i++) {
        const C first = to_compute(in[2 * i]);
        const C second = to_compute(in[2 * i + 1]);
        const C turn = sign * s[i];
        // An explicit fma, not left to the compiler: every variant must round alike, whatever vectors the memory allows.
        out[2 * i] = convert<Element>(fma(first, C(c[i]), -(second * turn)));
        out[2 * i + 1] = convert<Element>(fma(first, turn, second * C(c[i])));
      }
      store_vector(target + t * t3 + column, out);
    }
  }
}
