// Stands in for kernels/mma.cuh, whose PTX no host compiler takes: the same instructions by exchanges within a warp.
#pragma once
#include "exp2.cuh"
#include "prelude.cuh"

namespace {

inline unsigned lane_number() { return threadIdx.x % 32; }

inline void load_matrices(uint32 (&words)[4], const void* row) {
  const unsigned lane = lane_number();
  const auto rows = emulator::pass_to_warp(row);
  for (unsigned i = 0; i < 4; i++) words[i] = static_cast<const uint32*>(rows[8 * i + lane / 4])[lane % 4];
}

inline void load_matrices_transposed(uint32 (&words)[4], const void* row) {
  const unsigned lane = lane_number();
  const auto rows = emulator::pass_to_warp(row);
  const auto half = [&](unsigned matrix, unsigned j) {
    return static_cast<const uint16*>(rows[8 * matrix + 2 * (lane % 4) + j])[lane / 4];
  };
  for (unsigned i = 0; i < 4; i++) words[i] = half(i, 0) | half(i, 1) << 16;
}

// They are there at once. What is not waited for could be late on a GPU, which no test here can see.
inline void copy_in_background(void* shared, const void* source, bool exists) {
  if (exists) {
    *static_cast<uint4*>(shared) = *static_cast<const uint4*>(source);
  } else {
    *static_cast<uint4*>(shared) = {};
  }
}
inline void commit_copies() {}
template <int kPending>
void wait_for_copies() {}

template <typename T>
double number_in(uint32 word, unsigned i) {
  return to_float(T{static_cast<uint16>(word >> 16 * i)});
}
template <>
inline double number_in<float>(uint32 word, unsigned) {
  return __uint_as_float(word & 0xffffe000u);
}

/** What a lane holds of both matrices. */
struct Operands {
  uint32 a[4], b[2];
};

/** Not to the bit: tensor cores cut what they add, this rounds once. */
template <typename T>
void multiply(float (&sums)[4], const uint32 (&a)[4], const uint32 (&b)[2]) {
  constexpr unsigned kNumbers = sizeof(T) == 4 ? 1 : 2;
  const auto operands = emulator::pass_to_warp(Operands{{a[0], a[1], a[2], a[3]}, {b[0], b[1]}});
  const unsigned group = lane_number() / 4 * 4, column = lane_number() % 4 * 8;
  double totals[4] = {sums[0], sums[1], sums[2], sums[3]};
  for (unsigned half = 0; half < 2; half++) {
    for (unsigned t = 0; t < 4; t++) {
      const Operands row = operands[group + t];
      const uint32 upper = row.a[2 * half], lower = row.a[2 * half + 1];
      const uint32 even = operands[column + t].b[half], odd = operands[column + 4 + t].b[half];
      for (unsigned i = 0; i < kNumbers; i++) {
        totals[0] += number_in<T>(upper, i) * number_in<T>(even, i);
        totals[1] += number_in<T>(upper, i) * number_in<T>(odd, i);
        totals[2] += number_in<T>(lower, i) * number_in<T>(even, i);
        totals[3] += number_in<T>(lower, i) * number_in<T>(odd, i);
      }
    }
  }
  for (int i = 0; i < 4; i++) sums[i] = static_cast<float>(totals[i]);
}

template <typename T>
void multiply_anew(float (&sums)[4], const uint32 (&a)[4], const uint32 (&b)[2]) {
  for (float& sum : sums) sum = 0;
  multiply<T>(sums, a, b);
}

inline uint32 to_tf32(float x) {
  const uint32 bits = __float_as_uint(x);
  return x - x == 0 ? bits + 0x1000u & 0xffffe000u : x == x ? bits : 0x7fffffffu;
}

constexpr bool kAddsVectors = false;
inline void add_to_memory(float* memory, float x) { *memory += x; }
inline void add_to_memory(float* memory, const Vector<float, 4>& x) {
  for (int i = 0; i < 4; i++) memory[i] += x.values[i];
}

inline int32 read_acquired(const int32* memory) { return *memory; }
inline void write_released(int32* memory, int32 value) { *memory = value; }

}  // namespace
