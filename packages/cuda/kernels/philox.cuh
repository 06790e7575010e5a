// Philox4x32-10 (Salmon et al. 2011): 128 random bits from a counter and a key; src/tensor/random/philox.ts gives the same.
#ifndef ROOFLINE_PHILOX_CUH
#define ROOFLINE_PHILOX_CUH

#include "prelude.cuh"

/** The random words of four neighbouring elements. */
struct Words {
  uint32 values[4];
};

__device__ __forceinline__ Words philox(uint64 counter, uint32 key0, uint32 key1) {
  Words x = {{static_cast<uint32>(counter), static_cast<uint32>(counter >> 32), 0u, 0u}};
#pragma unroll
  for (int round = 0; round < 10; round++) {
    const uint32 high0 = __umulhi(0xD2511F53u, x.values[0]), low0 = 0xD2511F53u * x.values[0];
    const uint32 high1 = __umulhi(0xCD9E8D57u, x.values[2]), low1 = 0xCD9E8D57u * x.values[2];
    x = {{high1 ^ x.values[1] ^ key0, low1, high0 ^ x.values[3] ^ key1, low0}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return x;
}

#endif
