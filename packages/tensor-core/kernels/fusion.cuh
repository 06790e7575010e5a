// What a kernel that works row by row does with an input as it loads it, and with an output as it stores it: here nothing. A
// compiled program gives a header of this name with the element-wise ops before and behind the kernel in it, which
// src/backends/cuda/generated/kernel-fusion.ts writes; so that what they hand on stays in registers.
//
//   Edges   a structure, the kernel's last parameter, with
//     before.load<N>(address, at, column)      N elements of the input, which lies at `address`: those from element
//                                              `at` on, in row at / columns and `column`
//     after.load<N>(at, column)                an After::Loaded<N>: what the output's elements from `at` on need of memory;
//                                              early enough, its latency passes while the kernel works
//     after.store(address, at, loaded, x)      stores N elements of the output
//   kHasBefore: before.load writes memory, too, so that each element may be loaded once only, and before after.load
#ifndef ROOFLINE_EDGES_CUH
#define ROOFLINE_EDGES_CUH

#include "no_fusion.cuh"

constexpr bool kHasBefore = false;

using Before = NoBefore;
using After = NoAfter;

struct Edges {
  Before before;
  After after;
};

#endif
