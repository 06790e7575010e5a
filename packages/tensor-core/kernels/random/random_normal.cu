// kernel   random_normal(y, count, seedLow, seedHigh, offset, mean, standardDeviation, firstProbability,
//                        probabilityRange, low, high)
//            mean + standardDeviation · Φ⁻¹(firstProbability + probabilityRange · (k + ½) / 2^32), held to
//            [low, high]; see random.cuh
#include "normal_coefficients.cuh"
#include "random.cuh"

template <int N>
__device__ __forceinline__ double polynomial(const double (&coefficients)[N], double x) {
  double y = coefficients[N - 1];
#pragma unroll
  for (int i = N - 2; i >= 0; i--) y = madd(y, x, coefficients[i]);
  return y;
}

/** log of a positive normal number: exponent · ln 2 + 2 artanh((m - 1) / (m + 1)), √½ <= m < √2. */
__device__ __forceinline__ double deterministic_log(double x) {
  const uint64 bits = static_cast<uint64>(__double_as_longlong(x));
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double mantissa = __longlong_as_double(static_cast<int64>((bits & 0xfffffffffffffull) | 0x3ff0000000000000ull));
  if (mantissa > kSqrt2) {
    mantissa = __dmul_rn(mantissa, 0.5);
    exponent += 1;
  }
  const double f = __ddiv_rn(__dadd_rn(mantissa, -1.0), __dadd_rn(mantissa, 1.0));
  const double series = polynomial(kArtanh, __dmul_rn(f, f));
  return madd(exponent, kLn2, __dmul_rn(__dmul_rn(2.0, f), series));
}

/** Φ⁻¹(p), 0 < p < 1 (Wichura 1988, algorithm AS 241, PPND16). */
__device__ __forceinline__ double inverse_normal(double p) {
  const double q = __dadd_rn(p, -0.5);
  if (fabs(q) <= 0.425) {
    const double r = __dadd_rn(0.180625, -__dmul_rn(q, q));
    return __ddiv_rn(__dmul_rn(q, polynomial(kCentralNumerator, r)), polynomial(kCentralDenominator, r));
  }
  const double tail = q < 0 ? p : __dadd_rn(1.0, -p);
  double r = __dsqrt_rn(-deterministic_log(tail));
  double z;
  if (r <= 5.0) {
    r = __dadd_rn(r, -1.6);
    z = __ddiv_rn(polynomial(kMiddleNumerator, r), polynomial(kMiddleDenominator, r));
  } else {
    r = __dadd_rn(r, -5.0);
    z = __ddiv_rn(polynomial(kFarNumerator, r), polynomial(kFarDenominator, r));
  }
  return q < 0 ? -z : z;
}

extern "C" __global__ void random_normal(Element* y, int64 count, uint32 seedLow, uint32 seedHigh, int64 offset,
                                         double mean, double standardDeviation, double firstProbability,
                                         double probabilityRange, double low, double high) {
  fill(y, count, seedLow, seedHigh, offset, [&](uint32 word) {
    const double uniform = __dmul_rn(__dadd_rn(word, 0.5), kWordUnit);
    const double p = madd(uniform, probabilityRange, firstProbability);
    const double x = madd(inverse_normal(p), standardDeviation, mean);
    return x < low ? low : x > high ? high : x;
  });
}
