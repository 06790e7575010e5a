// Stands in for kernels/float16.cuh, whose PTX no host compiler takes: the same conversions by bit operations.
#pragma once

struct float16 {
  unsigned short bits;
};

struct bfloat16 {
  unsigned short bits;
};

inline float to_float(float16 x) {
  const unsigned sign = (x.bits & 0x8000u) << 16;
  const unsigned exponent = x.bits >> 10 & 31u;
  const unsigned mantissa = x.bits & 0x3ffu;
  if (exponent == 31) return __uint_as_float(sign | 0x7f800000u | mantissa << 13);
  const float magnitude = exponent == 0 ? ldexp(static_cast<float>(mantissa), -24)
                                        : ldexp(static_cast<float>(mantissa | 0x400u), static_cast<int>(exponent) - 25);
  return sign ? -magnitude : magnitude;
}

inline float to_float(bfloat16 x) { return __uint_as_float(static_cast<unsigned>(x.bits) << 16); }

inline float16 to_float16(float x) {
  const unsigned bits = __float_as_uint(x);
  const unsigned short sign = bits >> 16 & 0x8000u;
  const float magnitude = fabs(x);
  if (x != x) return {0x7fff};
  if (magnitude >= 65520.0f) return {static_cast<unsigned short>(sign | 0x7c00u)};
  if (magnitude < ldexp(1.0f, -14)) {
    return {static_cast<unsigned short>(sign | static_cast<unsigned>(nearbyint(ldexp(magnitude, 24))))};
  }
  const unsigned rounded = __float_as_uint(magnitude) + 0xfffu + (bits >> 13 & 1u);
  return {static_cast<unsigned short>(sign | (rounded - (112u << 23)) >> 13)};
}

inline bfloat16 to_bfloat16(float x) {
  const unsigned bits = __float_as_uint(x);
  if (x != x) return {0x7fff};
  return {static_cast<unsigned short>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}

inline unsigned pack_float16(float first, float second) {
  return to_float16(first).bits | static_cast<unsigned>(to_float16(second).bits) << 16;
}

inline unsigned pack_bfloat16(float first, float second) {
  return to_bfloat16(first).bits | static_cast<unsigned>(to_bfloat16(second).bits) << 16;
}

template <typename T>
inline unsigned pack_pair(float first, float second);
template <>
inline unsigned pack_pair<float16>(float first, float second) {
  return pack_float16(first, second);
}
template <>
inline unsigned pack_pair<bfloat16>(float first, float second) {
  return pack_bfloat16(first, second);
}
