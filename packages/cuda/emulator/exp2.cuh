// Stands in for kernels/exp2.cuh, whose PTX no host compiler takes.
#pragma once

inline float fast_exp2(float x) { return exp2(x); }
