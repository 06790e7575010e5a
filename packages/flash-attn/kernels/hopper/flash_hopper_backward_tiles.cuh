// Where a block of flash_hopper_backward has its tiles in shared memory, and which keys and queries they are of.
#ifndef ROOFLINE_FLASH_HOPPER_BACKWARD_TILES_CUH
#define ROOFLINE_FLASH_HOPPER_BACKWARD_TILES_CUH

#include "flash_hopper_backward.cuh"

namespace {

constexpr int kKeyBytes = kTileBytes<kBlockN>;
constexpr int kQueryBytes = kTileBytes<BLOCK_M>;
constexpr int kScoreBytes = BLOCK_M * kBlockN * 2;
constexpr int kSumBytes = kTileSums * 4;
constexpr int kRowBytes = BLOCK_M * 4;  // of lseLog2 or delta

// Shared memory, from an address that is a multiple of 1024 on.
constexpr int kValueOffset = kKeyBytes;
constexpr int kQueryOffset = kValueOffset + kKeyBytes;
constexpr int kGradOOffset = kQueryOffset + STAGES * kQueryBytes;
constexpr int kScoreOffset = kGradOOffset + STAGES * kQueryBytes;
constexpr int kSumsOffset = kScoreOffset + 2 * kScoreBytes;
constexpr int kLseOffset = kSumsOffset + SUM_BUFFERS * kSumBytes;
constexpr int kDeltaOffset = kLseOffset + STAGES * kRowBytes;
constexpr int kBarrierOffset = kDeltaOffset + STAGES * kRowBytes;

/** Shared addresses: of the tiles, and of their barriers. */
struct SharedMemory {
  unsigned base;

  __device__ __forceinline__ unsigned key() const { return base; }
  __device__ __forceinline__ unsigned value() const { return base + kValueOffset; }
  __device__ __forceinline__ unsigned query(int stage) const { return base + kQueryOffset + stage * kQueryBytes; }
  __device__ __forceinline__ unsigned grad_o(int stage) const { return base + kGradOOffset + stage * kQueryBytes; }
  /** dSᵀ of this step or the one before. */
  __device__ __forceinline__ unsigned score(int buffer) const { return base + kScoreOffset + buffer * kScoreBytes; }
  /** Where dQ is summed in order: this block's part of a tile of dQ, or gradQ of the tile. */
  __device__ __forceinline__ unsigned sums(int buffer) const { return base + kSumsOffset + buffer * kSumBytes; }
  __device__ __forceinline__ unsigned lse(int stage) const { return base + kLseOffset + stage * kRowBytes; }
  __device__ __forceinline__ unsigned delta(int stage) const { return base + kDeltaOffset + stage * kRowBytes; }
  __device__ __forceinline__ unsigned query_filled(int stage) const { return base + kBarrierOffset + 8 * stage; }
  __device__ __forceinline__ unsigned query_emptied(int stage) const { return query_filled(STAGES + stage); }
  __device__ __forceinline__ unsigned grad_o_filled(int stage) const { return query_filled(2 * STAGES + stage); }
  __device__ __forceinline__ unsigned grad_o_emptied(int stage) const { return query_filled(3 * STAGES + stage); }
  __device__ __forceinline__ unsigned keys_filled() const { return query_filled(4 * STAGES); }
  __device__ __forceinline__ unsigned sums_filled(int buffer) const { return query_filled(4 * STAGES + 1 + buffer); }
  __device__ __forceinline__ unsigned sums_emptied(int buffer) const { return sums_filled(SUM_BUFFERS + buffer); }
  /** Where dQ is summed in order: the number of this block in the order in which blocks begin. */
  __device__ __forceinline__ unsigned ticket() const { return sums_filled(2 * SUM_BUFFERS); }
};

/**
 * A tile of keys, and the tiles of queries that see some of it. They are taken from the last on: under a causal mask blocks
 * of keys that run at the same time then begin with the same queries. The tiles of keys with the most come first.
 */
struct KeyTile {
  int number, key, keyHead, batch, firstRowTile;

  __device__ __forceinline__ KeyTile(const HopperBackwardParams& p, int block) {
    const int perBand = p.keyTiles * p.band, band = block / perBand, inBand = block - band * perBand;
    const int width = min(p.band, p.keyHeadsTotal - band * p.band);
    number = inBand / width;
    const int keyHeadOfAll = band * p.band + inBand - number * width;
    key = number * kBlockN;
    batch = keyHeadOfAll / p.keyHeads;
    keyHead = keyHeadOfAll - batch * p.keyHeads;
    firstRowTile = CAUSAL ? max(0, key + p.queries - p.keys) / BLOCK_M : 0;
  }

  /** From this tile of queries on, each query sees every key of the tile, all of which exist. */
  __device__ __forceinline__ int first_clear(const HopperBackwardParams& p) const {
    const int lastKey = key + kBlockN - 1;
    if (lastKey >= p.keys) return p.rowTiles;
    return CAUSAL ? min(p.rowTiles, ceil_div(max(0, lastKey + p.queries - p.keys), BLOCK_M)) : 0;
  }

  /** Whether no tile of keys after this one is seen by this tile of queries. */
  __device__ __forceinline__ bool is_last_of(const HopperBackwardParams& p, int rowTile) const {
    if (number == p.keyTiles - 1) return true;
    return CAUSAL && key + kBlockN + p.queries - p.keys >= (rowTile + 1) * BLOCK_M;
  }
};

}  // namespace

#endif
