// Elements of each dtype, and how two become one.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "gloo/types.h"

namespace roofline {

// The numbers that JavaScript passes; src/gloo/native-codes.ts has the same.
enum DType { kFloat32, kFloat16, kBFloat16, kFloat64, kInt32, kInt64 };
enum Reduction { kSum, kProduct, kMin, kMax, kAverage };

struct BFloat16 { uint16_t bits; };

template <typename T> struct Element {
  static T load(T x) { return x; }
  static T store(T x) { return x; }
};
template <> struct Element<gloo::float16> {
  static float load(gloo::float16 x) { return gloo::cpu_half2float(x); }
  static gloo::float16 store(float x) { return gloo::cpu_float2half_rn(x); }
};
template <> struct Element<BFloat16> {
  static float load(BFloat16 x) {
    uint32_t bits = uint32_t{x.bits} << 16;
    float value;
    memcpy(&value, &bits, 4);
    return value;
  }
  // To nearest, ties to even; a NaN stays one.
  static BFloat16 store(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    if (value != value) return {static_cast<uint16_t>((bits >> 16) | 0x40)};
    return {static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
  }
};

using Combine = void (*)(void*, const void*, const void*, size_t);

template <typename T, typename F> void combine(void* out, const void* a, const void* b, size_t count, F f) {
  auto y = static_cast<T*>(out);
  auto x0 = static_cast<const T*>(a);
  auto x1 = static_cast<const T*>(b);
  // The output is one of the inputs, or apart from both: no element depends on another.
#pragma GCC ivdep
  for (size_t i = 0; i < count; i++) y[i] = Element<T>::store(f(Element<T>::load(x0[i]), Element<T>::load(x1[i])));
}

template <typename T, typename F> Combine combineBy(F) {
  return [](void* out, const void* a, const void* b, size_t count) { combine<T>(out, a, b, count, F()); };
}

struct Sum { template <typename T> T operator()(T a, T b) const { return a + b; } };
struct Product { template <typename T> T operator()(T a, T b) const { return a * b; } };
// A NaN wins over any number, as in NumPy and in PyTorch's own reductions.
struct Min { template <typename T> T operator()(T a, T b) const { return b < a || b != b ? b : a; } };
struct Max { template <typename T> T operator()(T a, T b) const { return b > a || b != b ? b : a; } };

// Compiled with -fwrapv: integers wrap.
template <typename T> Combine combineOf(Reduction reduction) {
  switch (reduction) {
    case kSum: case kAverage: return combineBy<T>(Sum());
    case kProduct: return combineBy<T>(Product());
    case kMin: return combineBy<T>(Min());
    case kMax: return combineBy<T>(Max());
  }
  throw std::invalid_argument("no such reduction");
}

template <typename T> void divide(void* data, size_t count, int by) {
  auto y = static_cast<T*>(data);
  for (size_t i = 0; i < count; i++) y[i] = Element<T>::store(Element<T>::load(y[i]) / by);
}

struct DTypeFacts {
  size_t bytes;
  Combine (*combineOf)(Reduction);
  void (*divide)(void*, size_t, int);
};

template <typename T> DTypeFacts factsOf() { return {sizeof(T), combineOf<T>, divide<T>}; }

inline DTypeFacts factsOf(int dtype) {
  switch (dtype) {
    case kFloat32: return factsOf<float>();
    case kFloat16: return factsOf<gloo::float16>();
    case kBFloat16: return factsOf<BFloat16>();
    case kFloat64: return factsOf<double>();
    case kInt32: return factsOf<int32_t>();
    case kInt64: return factsOf<int64_t>();
  }
  throw std::invalid_argument("no such dtype");
}

}  // namespace roofline
