// The functions of <cmath> that CUDA has by the same names, of float and of double, without its templates.
#pragma once

#define EMULATOR_OF_ONE(name)                \
  extern "C" double name(double) noexcept;   \
  extern "C" float name##f(float) noexcept;  \
  inline float name(float x) { return name##f(x); }

EMULATOR_OF_ONE(acos)
EMULATOR_OF_ONE(acosh)
EMULATOR_OF_ONE(asin)
EMULATOR_OF_ONE(asinh)
EMULATOR_OF_ONE(atan)
EMULATOR_OF_ONE(atanh)
EMULATOR_OF_ONE(cbrt)
EMULATOR_OF_ONE(ceil)
EMULATOR_OF_ONE(cos)
EMULATOR_OF_ONE(cosh)
EMULATOR_OF_ONE(erf)
EMULATOR_OF_ONE(erfc)
EMULATOR_OF_ONE(exp)
EMULATOR_OF_ONE(exp2)
EMULATOR_OF_ONE(expm1)
EMULATOR_OF_ONE(fabs)
EMULATOR_OF_ONE(floor)
EMULATOR_OF_ONE(lgamma)
EMULATOR_OF_ONE(log)
EMULATOR_OF_ONE(log10)
EMULATOR_OF_ONE(log1p)
EMULATOR_OF_ONE(log2)
EMULATOR_OF_ONE(nearbyint)
EMULATOR_OF_ONE(rint)
EMULATOR_OF_ONE(round)
EMULATOR_OF_ONE(sin)
EMULATOR_OF_ONE(sinh)
EMULATOR_OF_ONE(sqrt)
EMULATOR_OF_ONE(tan)
EMULATOR_OF_ONE(tanh)
EMULATOR_OF_ONE(tgamma)
EMULATOR_OF_ONE(trunc)
#undef EMULATOR_OF_ONE

#define EMULATOR_OF_TWO(name)                       \
  extern "C" double name(double, double) noexcept;  \
  extern "C" float name##f(float, float) noexcept;  \
  inline float name(float x, float y) { return name##f(x, y); }

EMULATOR_OF_TWO(atan2)
EMULATOR_OF_TWO(copysign)
EMULATOR_OF_TWO(fdim)
EMULATOR_OF_TWO(fmax)
EMULATOR_OF_TWO(fmin)
EMULATOR_OF_TWO(fmod)
EMULATOR_OF_TWO(hypot)
EMULATOR_OF_TWO(pow)
EMULATOR_OF_TWO(remainder)
#undef EMULATOR_OF_TWO

extern "C" double fma(double, double, double) noexcept;
extern "C" float fmaf(float, float, float) noexcept;
inline float fma(float x, float y, float z) { return fmaf(x, y, z); }
extern "C" double ldexp(double, int) noexcept;
extern "C" float ldexpf(float, int) noexcept;
inline float ldexp(float x, int exponent) { return ldexpf(x, exponent); }
extern "C" int ilogb(double) noexcept;
extern "C" int ilogbf(float) noexcept;
inline int ilogb(float x) { return ilogbf(x); }
extern "C" int abs(int) noexcept;

template <typename T>
constexpr bool isfinite(T x) {
  return __builtin_isfinite(x);
}
template <typename T>
constexpr bool isinf(T x) {
  return __builtin_isinf(x);
}
template <typename T>
constexpr bool isnan(T x) {
  return __builtin_isnan(x);
}
template <typename T>
constexpr bool signbit(T x) {
  return __builtin_signbit(x);
}
