// What flash_hopper_forward.cu is given, where it keeps things in shared memory, and the order of its tiles.
//
// HopperForwardParams, 576 bytes, 64-byte aligned, passed by value; src/cuda/hopper-forward.ts writes it.
//   0    q             CUtensorMap of [batch][heads][queries][d], boxes of 64 rows (hopper_tiles.cuh)
//   128  k             CUtensorMap of [batch][keyHeads][keys][d], boxes of BLOCK_N rows
//   256  v             CUtensorMap, likewise
//   384  o             CUtensorMap, as q, boxes of 64 rows and one part
//   512  lse           float*      [batch][heads][queries], dense
//   520  nextTile      int32*      zero before the first launch; each launch leaves zero
//   528  scaleLog2     float32     scale · log2 e, above zero
//   532  scale         float32
//   536  queries       int32
//   540  keys          int32
//   544  heads         int32       of q
//   548  headsPerKeyHead  int32    so many neighbours of q's heads share a head of k and v
//   552  headsTotal    int32       batch · heads
//   556  rowTiles      int32       ceil(queries / (64 · WARPGROUPS))
//   560  tiles         int32       rowTiles · headsTotal
//   564  band          int32       heads whose tiles are taken together, so that their k and v stay in L2
//   568  (padding to 576)
#ifndef ROOFLINE_FLASH_HOPPER_FORWARD_CUH
#define ROOFLINE_FLASH_HOPPER_FORWARD_CUH

#include "hopper_tiles.cuh"

struct HopperForwardParams {
  TensorMap q, k, v, o;
  float* lse;
  int32* nextTile;
  float scaleLog2, scale;
  int32 queries, keys, heads, headsPerKeyHead, headsTotal, rowTiles, tiles, band;
};
static_assert(sizeof(HopperForwardParams) == 576, "as the host writes it");

namespace {

constexpr int kRows = 64 * WARPGROUPS;  // queries of a tile
constexpr int kConsumers = 128 * WARPGROUPS;
constexpr int kThreads = kConsumers + 128;
constexpr int kQueryBytes = kTileBytes<64>;  // of one warpgroup
constexpr int kKeyBytes = kTileBytes<BLOCK_N>;

// Shared memory, from an address that is a multiple of 1024 on: tiles, then barriers.
constexpr int kQueryOffset = 0;
constexpr int kOutputOffset = kQueryOffset + WARPGROUPS * kQueryBytes;
constexpr int kKeyOffset = kOutputOffset + WARPGROUPS * kQueryBytes;
constexpr int kValueOffset = kKeyOffset + STAGES * kKeyBytes;
constexpr int kBarrierOffset = kValueOffset + STAGES * kKeyBytes;

/** Shared addresses: of a warpgroup's tiles, of a stage's, and of their barriers. */
struct SharedMemory {
  unsigned base;

  __device__ __forceinline__ unsigned query(int warpgroup) const { return base + kQueryOffset + warpgroup * kQueryBytes; }
  __device__ __forceinline__ unsigned output(int warpgroup) const {
    return base + kOutputOffset + warpgroup * kQueryBytes;
  }
  __device__ __forceinline__ unsigned key(int stage) const { return base + kKeyOffset + stage * kKeyBytes; }
  __device__ __forceinline__ unsigned value(int stage) const { return base + kValueOffset + stage * kKeyBytes; }
  __device__ __forceinline__ unsigned key_filled(int stage) const { return base + kBarrierOffset + 8 * stage; }
  __device__ __forceinline__ unsigned key_emptied(int stage) const { return key_filled(STAGES + stage); }
  __device__ __forceinline__ unsigned value_filled(int stage) const { return key_filled(2 * STAGES + stage); }
  __device__ __forceinline__ unsigned value_emptied(int stage) const { return key_filled(3 * STAGES + stage); }
  __device__ __forceinline__ unsigned query_filled(int warpgroup) const { return key_filled(4 * STAGES + warpgroup); }
  __device__ __forceinline__ unsigned query_emptied(int warpgroup) const {
    return query_filled(WARPGROUPS + warpgroup);
  }
  /** The number of the tile whose queries are filled in; negative when there is none left. */
  __device__ __forceinline__ unsigned tile_number(int warpgroup) const {
    return query_filled(2 * WARPGROUPS) + 4 * warpgroup;
  }
};

/** One head's queries from `row` on. Under a causal mask those with the most keys come first. */
struct Tile {
  int row, head, keyHead, batch, headOfAll;

  __device__ __forceinline__ Tile(const HopperForwardParams& p, int number) {
    const int perBand = p.rowTiles * p.band, band = number / perBand, inBand = number - band * perBand;
    const int width = min(p.band, p.headsTotal - band * p.band);
    const int rowTile = inBand / width;
    headOfAll = band * p.band + inBand - rowTile * width;
    row = (CAUSAL ? p.rowTiles - 1 - rowTile : rowTile) * kRows;
    batch = headOfAll / p.heads;
    head = headOfAll - batch * p.heads;
    keyHead = head / p.headsPerKeyHead;
  }

  /** The keys below this one are all that the queries from `row` on, `rows` of them, see. */
  static __device__ __forceinline__ int visible_keys(const HopperForwardParams& p, int row, int rows) {
    if (row >= p.queries) return 0;
    return CAUSAL ? max(0, min(row + rows, p.queries) + p.keys - p.queries) : p.keys;
  }

  /** Blocks of keys that the whole tile takes; a warpgroup may need fewer of them. */
  __device__ __forceinline__ int blocks(const HopperForwardParams& p) const {
    return ceil_div(visible_keys(p, row, kRows), BLOCK_N);
  }
};

/** Deals tiles out to the blocks of the grid: each one's first by its number, the others to whoever asks. */
struct TileQueue {
  const HopperForwardParams& p;
  bool started = false;

  __device__ __forceinline__ explicit TileQueue(const HopperForwardParams& p) : p(p) {}

  /** The next tile's number, or -1. */
  __device__ __forceinline__ int take() {
    const int blocks = gridDim.x;
    if (!started) {
      started = true;
      return blockIdx.x;
    }
    const int tile = atomicAdd(p.nextTile, 1) + blocks;
    // Each block asks in vain once: this is the last of them, and leaves zero to the next launch.
    if (tile == p.tiles + blocks - 1) *p.nextTile = 0;
    return tile < p.tiles ? tile : -1;
  }
};

}  // namespace

#endif
