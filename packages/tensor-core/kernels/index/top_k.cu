// The k largest or smallest elements of each row, in order, and their columns. NaN is larger than every number, and
// of equal elements the earlier one comes first.
//
// kernel   top_k(x, values, indices, order, columns, k, slots)
//            x [rows, columns], values [rows, k]: ELEMENT; indices [rows, k] int64; order [rows, slots] uint32, memory
//            to work in, slots the power of two that holds k; counts int32
//            grid rows; block 256
//   macros ELEMENT; KEY: uint32, or uint64 for elements of 64 bits; LARGEST: 1 or 0
// A radix select, digit by digit from the front, finds which elements are chosen (Alabi et al. 2012); equal ones are
// distinguished by further digits, those of their column. A bitonic sort then puts the chosen in order. A row is read once
// for each digit that it takes (of four, where no chosen one equals one that is not) and once more.
#include "prelude.cuh"

using Element = ELEMENT;
using Key = KEY;

constexpr int kThreads = 256;
constexpr int kKeyDigits = sizeof(Key);
constexpr int kDigits = kKeyDigits + 4;  // of eight bits: the key's, then those of the place
constexpr uint32 kNone = 0xffffffffu;

// Unsigned numbers in the same order as the elements.
__device__ __forceinline__ uint32 ordered(float x) {
  if (x != x) return 0xffffffffu;
  const uint32 bits = __float_as_uint(x == 0 ? 0.0f : x);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
__device__ __forceinline__ uint64 ordered(double x) {
  if (x != x) return ~0ull;
  const uint64 bits = static_cast<uint64>(__double_as_longlong(x == 0 ? 0.0 : x));
  return bits >> 63 ? ~bits : bits | 0x8000000000000000ull;
}
__device__ __forceinline__ uint32 ordered(int32 x) { return static_cast<uint32>(x) ^ 0x80000000u; }
__device__ __forceinline__ uint64 ordered(int64 x) { return static_cast<uint64>(x) ^ 0x8000000000000000ull; }

/** Larger for an element that is chosen earlier. */
__device__ __forceinline__ Key key_of(Element x) {
  const Key key = ordered(to_compute(x));
  return LARGEST ? key : static_cast<Key>(~key);
}

/** The leading digits of a key and a column: those known so far of the last chosen element. */
struct Prefix {
  Key key;
  uint32 place;
};

/** The first `digits` digits of the element with this key in this column; columns count from the back. */
__device__ __forceinline__ Prefix prefix_of(Key key, uint32 column, int digits) {
  if (digits == 0) return {0, 0};
  if (digits <= kKeyDigits) return {static_cast<Key>(key >> 8 * (kKeyDigits - digits)), 0};
  return {key, ~column >> 8 * (kDigits - digits)};
}

__device__ __forceinline__ uint32 digit_of(Key key, uint32 column, int digit) {
  if (digit < kKeyDigits) return static_cast<uint32>(key >> 8 * (kKeyDigits - 1 - digit)) & 255u;
  return ~column >> 8 * (kDigits - 1 - digit) & 255u;
}

/** Whether the element in column a comes before that in column b; a column past the end comes last. */
__device__ __forceinline__ bool precedes(const Element* row, uint32 a, uint32 b) {
  if (a == kNone || b == kNone) return a != kNone;
  const Key keyA = key_of(row[a]), keyB = key_of(row[b]);
  return keyA > keyB || (keyA == keyB && a < b);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    top_k(const Element* x, Element* values, int64* indices, uint32* order, int columns, int k, int slots) {
  __shared__ uint32 counts[kThreads];
  __shared__ uint32 chosenDigit, countAbove, countOfDigit, next;
  const int thread = threadIdx.x;
  const int64 r = blockIdx.x;
  const Element* row = x + r * columns;
  uint32* chosen = order + r * slots;

  Prefix last = {0, 0};
  int digits = 0;
  for (uint32 wanted = k; digits < kDigits; wanted -= countAbove) {
    if (digits > 0 && countOfDigit == wanted) break;  // all with this prefix are chosen
    __syncthreads();
    counts[thread] = 0;
    __syncthreads();
    for (int column = thread; column < columns; column += kThreads) {
      const Key key = key_of(row[column]);
      const Prefix prefix = prefix_of(key, column, digits);
      if (prefix.key == last.key && prefix.place == last.place) atomicAdd(&counts[digit_of(key, column, digits)], 1u);
    }
    __syncthreads();
    // For each digit, how many elements have it or a larger one.
    const uint32 own = counts[thread];
    for (int distance = 1; distance < kThreads; distance *= 2) {
      const uint32 above = thread + distance < kThreads ? counts[thread + distance] : 0;
      __syncthreads();
      counts[thread] += above;
      __syncthreads();
    }
    if (counts[thread] >= wanted && counts[thread] - own < wanted) {
      chosenDigit = thread;
      countAbove = counts[thread] - own;
      countOfDigit = own;
    }
    __syncthreads();
    if (digits < kKeyDigits) {
      last.key = static_cast<Key>(last.key << 8 | chosenDigit);
    } else {
      last.place = last.place << 8 | chosenDigit;
    }
    digits++;
  }

  if (thread == 0) next = 0;
  for (int slot = thread; slot < slots; slot += kThreads) chosen[slot] = kNone;
  __syncthreads();
  for (int column = thread; column < columns; column += kThreads) {
    const Prefix prefix = prefix_of(key_of(row[column]), column, digits);
    if (prefix.key > last.key || (prefix.key == last.key && prefix.place >= last.place)) {
      chosen[atomicAdd(&next, 1u)] = column;
    }
  }
  __syncthreads();

  for (int run = 2; run <= slots; run *= 2) {
    for (int distance = run / 2; distance > 0; distance /= 2) {
      for (int slot = thread; slot < slots; slot += kThreads) {
        const int partner = slot ^ distance;
        if (partner < slot) continue;
        const uint32 a = chosen[slot], b = chosen[partner];
        const bool ascends = (slot & run) == 0;
        if (ascends ? precedes(row, b, a) : precedes(row, a, b)) {
          chosen[slot] = b;
          chosen[partner] = a;
        }
      }
      __syncthreads();
    }
  }
  for (int i = thread; i < k; i += kThreads) {
    indices[r * k + i] = chosen[i];
    values[r * k + i] = row[chosen[i]];
  }
}
