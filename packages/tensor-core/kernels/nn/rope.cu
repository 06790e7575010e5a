// Rotary position embedding (Su et al. 2021) of interleaved pairs, of one tensor or of two with the same layout.
//
// kernel   rope(x0, x1, cosine, sine, y0, y1, shape and strides, sign)
//            (y[2i], y[2i+1]) = (x[2i]·c - x[2i+1]·s, x[2i]·s + x[2i+1]·c), c = cosine[t, i], s = sign·sine[t, i];
//            sign -1 turns back, which is the gradient
//          x0, x1: ELEMENT [n0, n1, n2, length, columns] with strides s0, s1, s2, s3 (int64, elements) and 1;
//          y0, y1: the same with strides t0, t1, t2, t3 and 1; cosine, sine: float [length, columns / 2]; lengths
//          int32, sign float32
//            grid (any, up to 65535, tensors); any block: x walks the elements of [length, columns], y groups of
//            kTogether matrices, z the tensors; a grid of one works on the first only
//   macros ELEMENT; VECTOR_LENGTH: even, divides columns and all strides; OFFSET: holds n0 · n1 · n2 and
//          length · columns, and a step of the grid beyond
// Bound by memory: x is read and y written once. A thread reads its angles once for all of its matrices, which are heads as a
// rule: twice as many bytes as the elements of one that they turn, if these are of 16 bits.
#include "prelude.cuh"

using Element = ELEMENT;
using C = compute_t<Element>;
using Offset = OFFSET;

constexpr int kTogether = 4;

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
  for (Offset at = static_cast<Offset>(blockIdx.x) * blockDim.x + threadIdx.x; at < vectors; at += step) {
    const int t = at / vectorsPerRow;
    const int column = (at - static_cast<Offset>(t) * vectorsPerRow) * VECTOR_LENGTH;
    const int64 pair = static_cast<int64>(at) * kPairs;
    const Vector<float, kPairs> c = load_vector<kPairs>(cosine + pair);
    const Vector<float, kPairs> s = load_vector<kPairs>(sine + pair);
    for (Offset first = static_cast<Offset>(blockIdx.y) * kTogether; first < matrices;
         first += static_cast<Offset>(gridDim.y) * kTogether) {
      // Loads of several matrices are under way at a time.
      Vector<Element, VECTOR_LENGTH> in[kTogether];
      int64 target[kTogether];
      int i2 = first % n2;
      int i1 = first / n2 % n1;
      int i0 = first / n2 / n1;
#pragma unroll
      for (int j = 0; j < kTogether; j++) {
        if (first + j >= matrices) break;
        in[j] = load_vector<VECTOR_LENGTH>(x + i0 * s0 + i1 * s1 + i2 * s2 + t * s3 + column);
        target[j] = i0 * t0 + i1 * t1 + i2 * t2 + t * t3 + column;
        if (++i2 < n2) continue;
        i2 = 0;
        if (++i1 < n1) continue;
        i1 = 0;
        i0++;
      }
#pragma unroll
      for (int j = 0; j < kTogether; j++) {
        if (first + j >= matrices) break;
        Vector<Element, VECTOR_LENGTH> out;
#pragma unroll
        for (int i = 0; i < kPairs; i++) {
          const C before = to_compute(in[j][2 * i]);
          const C after = to_compute(in[j][2 * i + 1]);
          const C turn = sign * s[i];
          // An explicit fma, not left to the compiler: every variant must round alike, whatever vectors the memory allows.
          out[2 * i] = convert<Element>(fma(before, C(c[i]), -(after * turn)));
          out[2 * i + 1] = convert<Element>(fma(before, turn, after * C(c[i])));
        }
        store_vector(y + target[j], out);
      }
    }
  }
}
