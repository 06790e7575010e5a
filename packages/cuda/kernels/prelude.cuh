// What every kernel shares. It includes no header of the CUDA toolkit, so that NVRTC needs nothing but its own
// library; the same text compiles with `nvcc -I kernels`. Compute capability 8.0 or newer.
#ifndef ROOFLINE_PRELUDE_CUH
#define ROOFLINE_PRELUDE_CUH

#include "float16.cuh"

// Types in memory -----------------------------------------------------------------------------------------
// float, double, float16, bfloat16, int32, int64 and bool8 are the storage types of the seven dtypes.

using uint8 = unsigned char;
using uint16 = unsigned short;
using int32 = int;
using uint32 = unsigned int;
using int64 = long long;
using uint64 = unsigned long long;

/** A bool in memory: zero is false. Written as 0 or 1. */
struct bool8 {
  uint8 bits;
};

// Types in registers --------------------------------------------------------------------------------------

template <typename Stored>
struct ComputeType {
  using type = Stored;
};
template <>
struct ComputeType<float16> {
  using type = float;
};
template <>
struct ComputeType<bfloat16> {
  using type = float;
};
template <>
struct ComputeType<bool8> {
  using type = bool;
};

/** The type to compute in: float for float16 and bfloat16, bool for bool8, else the storage type itself. */
template <typename Stored>
using compute_t = typename ComputeType<Stored>::type;

template <typename Stored>
__device__ __forceinline__ Stored to_compute(Stored x) {
  return x;
}
__device__ __forceinline__ float to_compute(float16 x) { return to_float(x); }
__device__ __forceinline__ float to_compute(bfloat16 x) { return to_float(x); }
__device__ __forceinline__ bool to_compute(bool8 x) { return x.bits != 0; }

template <typename To>
struct Conversion {
  template <typename From>
  static __device__ __forceinline__ To from(From x) {
    return static_cast<To>(x);
  }
};
template <>
struct Conversion<float16> {
  static __device__ __forceinline__ float16 from(float x) { return to_float16(x); }
};
template <>
struct Conversion<bfloat16> {
  static __device__ __forceinline__ bfloat16 from(float x) { return to_bfloat16(x); }
};
template <>
struct Conversion<bool8> {
  template <typename From>
  static __device__ __forceinline__ bool8 from(From x) {
    return {static_cast<uint8>(x != 0)};
  }
};

/** Any storage or compute type to any other, rounding to nearest even. */
template <typename To, typename From>
__device__ __forceinline__ To convert(From x) {
  return Conversion<To>::from(to_compute(x));
}

/**
 * A value that the compiler cannot contract with its use, such as a product with a sum. An addition with explicit rounding
 * stays one in machine code, and adding -0 changes no number.
 */
__device__ __forceinline__ float kept_apart(float x) {
#ifdef __CUDA_ARCH__
  return __fadd_rn(x, -0.0f);
#else
  return x;
#endif
}
__device__ __forceinline__ double kept_apart(double x) {
#ifdef __CUDA_ARCH__
  return __dadd_rn(x, -0.0);
#else
  return x;
#endif
}
template <typename T>
__device__ __forceinline__ T kept_apart(T x) {
  return x;
}

/** `x` as if stored to and loaded from memory of type Storage: the same bits as through two kernels. */
template <typename Storage, typename Compute, typename From>
__device__ __forceinline__ Compute as_stored(From x) {
  return kept_apart(convert<Compute>(convert<Storage>(x)));
}

// Vectors -------------------------------------------------------------------------------------------------

/** N values that are loaded and stored 16 bytes at a time, or at once where they are fewer; N · sizeof(T) is a power of two. */
template <typename T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Vector {
  T values[N];
  __device__ __forceinline__ T& operator[](int i) { return values[i]; }
  __device__ __forceinline__ const T& operator[](int i) const { return values[i]; }
};

/** How many values of T fill the widest load, 16 bytes. */
template <typename T>
constexpr int kVectorLength = 16 / static_cast<int>(sizeof(T));

/**
 * `address` must be aligned to N · sizeof(T) bytes, or to 16 where those are more; in a kernel compiled with UNALIGNED_VECTORS=1,
 * which loads and stores one value at a time, to sizeof(T).
 */
template <int N, typename T>
__device__ __forceinline__ Vector<T, N> load_vector(const T* address) {
#if UNALIGNED_VECTORS
  Vector<T, N> vector;
#pragma unroll
  for (int i = 0; i < N; i++) vector[i] = address[i];
  return vector;
#else
  return *reinterpret_cast<const Vector<T, N>*>(address);
#endif
}

template <int N, typename T>
__device__ __forceinline__ void store_vector(T* address, const Vector<T, N>& vector) {
#if UNALIGNED_VECTORS
#pragma unroll
  for (int i = 0; i < N; i++) address[i] = vector[i];
#else
  *reinterpret_cast<Vector<T, N>*>(address) = vector;
#endif
}

// Extremes ------------------------------------------------------------------------------------------------

template <typename T>
__device__ __forceinline__ T lowest();
template <>
__device__ __forceinline__ float lowest<float>() {
  return __int_as_float(static_cast<int>(0xff800000u));
}
template <>
__device__ __forceinline__ double lowest<double>() {
  return __longlong_as_double(static_cast<int64>(0xfff0000000000000ull));
}
template <>
__device__ __forceinline__ int32 lowest<int32>() {
  return static_cast<int32>(0x80000000u);
}
template <>
__device__ __forceinline__ int64 lowest<int64>() {
  return static_cast<int64>(0x8000000000000000ull);
}
template <>
__device__ __forceinline__ bool lowest<bool>() {
  return false;
}

template <typename T>
__device__ __forceinline__ T highest();
template <>
__device__ __forceinline__ float highest<float>() {
  return __int_as_float(0x7f800000);
}
template <>
__device__ __forceinline__ double highest<double>() {
  return __longlong_as_double(0x7ff0000000000000ll);
}
template <>
__device__ __forceinline__ int32 highest<int32>() {
  return 0x7fffffff;
}
template <>
__device__ __forceinline__ int64 highest<int64>() {
  return 0x7fffffffffffffffll;
}
template <>
__device__ __forceinline__ bool highest<bool>() {
  return true;
}

/** The larger one; NaN if either is NaN, as torch.maximum. */
template <typename T>
__device__ __forceinline__ T larger(T a, T b) {
  return a > b || a != a ? a : b;
}

/** The smaller one; NaN if either is NaN, as torch.minimum. */
template <typename T>
__device__ __forceinline__ T smaller(T a, T b) {
  return a < b || a != a ? a : b;
}

// Powers --------------------------------------------------------------------------------------------------

__device__ __forceinline__ float power(float base, float exponent) { return powf(base, exponent); }
__device__ __forceinline__ double power(double base, double exponent) { return pow(base, exponent); }

/**
 * Integer powers, by squaring, modulo 2^32 or 2^64: in unsigned types, whose overflow C++ defines. A negative exponent gives
 * the truncated quotient: 0 unless base is 1 or -1.
 */
template <typename Unsigned, typename Integer>
__device__ __forceinline__ Integer integer_power(Integer base, Integer exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  Unsigned result = 1;
  for (Unsigned square = static_cast<Unsigned>(base); exponent > 0; exponent /= 2, square *= square) {
    if (exponent % 2) result *= square;
  }
  return static_cast<Integer>(result);
}

__device__ __forceinline__ int32 power(int32 base, int32 exponent) { return integer_power<uint32>(base, exponent); }
__device__ __forceinline__ int64 power(int64 base, int64 exponent) { return integer_power<uint64>(base, exponent); }

// Reductions ----------------------------------------------------------------------------------------------
// Each has one fixed order, so that the same input always gives the same bits.

struct Sum {
  template <typename T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a + b;
  }
};

struct Larger {
  template <typename T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return larger(a, b);
  }
};

constexpr unsigned kFullWarp = 0xffffffffu;

/** Folds groups of `width` (a power of two up to 32) neighbouring lanes; each lane gets its group's result. */
template <int width = 32, typename T, typename Combine>
__device__ __forceinline__ T warp_reduce(T x, Combine combine) {
#pragma unroll
  for (int distance = width / 2; distance > 0; distance /= 2) {
    x = combine(x, static_cast<T>(__shfl_xor_sync(kFullWarp, x, distance)));
  }
  return x;
}

/** Folds the x of all threads of a block of kThreads; every thread gets the result. */
template <int kThreads, typename T, typename Combine>
__device__ __forceinline__ T block_reduce(T x, Combine combine) {
  constexpr int kWarps = kThreads / 32;
  static_assert(kThreads % 32 == 0 && kWarps <= 32 && (kWarps & (kWarps - 1)) == 0, "a power of two of whole warps");
  x = warp_reduce(x, combine);
  if (kWarps == 1) return x;
  __shared__ T partial[kWarps];
  __syncthreads();  // a reduction before this one may still be reading `partial`
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = x;
  __syncthreads();
  return warp_reduce<kWarps>(partial[threadIdx.x % kWarps], combine);
}

#endif
