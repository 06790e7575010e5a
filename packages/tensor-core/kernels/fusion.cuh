// The prologue and the epilogue of a kernel that works row by row: element-wise ops that it does as it loads an input and as it
// stores an output. Here there are none. For a fused call the compiler gives a header of this name with the ops in it, written
// by src/backends/cuda/generated/kernel-fusion.ts, so that what the ops pass on stays in registers.
//
//   Fusion   a structure, the kernel's last parameter, with
//     prologue.load<N>(address, at, column)    N elements of the input, which lies at `address`: those from element
//                                              `at` on, in row at / columns and `column`
//     epilogue.load<N>(at, column)             an Epilogue::Loaded<N>: what the epilogue reads from memory for the output's
//                                              elements from `at` on; loaded early, its latency passes while the kernel works
//     epilogue.store(address, at, loaded, x)   stores N elements of the output
//   kHasPrologue: prologue.load also writes memory, so each element may be loaded only once, and before epilogue.load
#ifndef ROOFLINE_FUSION_CUH
#define ROOFLINE_FUSION_CUH

#include "no_fusion.cuh"

constexpr bool kHasPrologue = false;

using Prologue = NoPrologue;
using Epilogue = NoEpilogue;

struct Fusion {
  Prologue prologue;
  Epilogue epilogue;
};

#endif
