// What flash_hopper_forward.cu is given, where it keeps things in shared memory, and the order of its tiles.
//
// HopperForwardParams, 576 bytes, 64-byte aligned, passed by value; src/cuda/hopper/hopper-forward.ts writes it.
//   0    q             CUtensorMap of [batch][heads][queries][d], boxes of 64 rows (hopper_tiles.cuh)
//   128  k             CUtensorMap of [batch][keyHeads][keys][d], boxes of BLOCK_N rows
//   256  v             CUtensorMap, likewise
//   384  o             CUtensorMap, as q, boxes of 64 / SPLITS rows and one part
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

constexpr int kScores = BLOCK_N / 2;  // floats a thread holds of its warpgroup's 64 × BLOCK_N
constexpr int kWeights = BLOCK_N / 4;
constexpr int kOutputs = HEAD_DIM / 2;
constexpr int kRows = 64 * WARPGROUPS;  // queries of a tile
constexpr int kConsumers = 128 * WARPGROUPS;
constexpr int kThreads = kConsumers + 128;
constexpr int kQueryBytes = kTileBytes<64>;  // of one warpgroup
constexpr int kKeyBytes = kTileBytes<BLOCK_N>;

// Shared memory, from an address that is a multiple of 1024 on: tiles, then barriers.
constexpr int kQueryOffset = 0;
constexpr int kOutputOffset = OUTPUT_OVER_QUERIES ? kQueryOffset : kQueryOffset + WARPGROUPS * kQueryBytes;
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
  /** The tile whose queries are filled in: see Tile::leave. */
  __device__ __forceinline__ unsigned tile(int warpgroup) const { return query_filled(2 * WARPGROUPS) + 16 * warpgroup; }
};

/** Blocks of keys from `first` up to, but without, `end`. */
struct Span {
  int first, end;
};

/** a / b of numbers that are not negative; most divisions here have a quotient of 0, or a divisor of 1. */
__device__ __forceinline__ int quotient(int a, int b) {
  return a < b ? 0 : b == 1 ? a : static_cast<int>(static_cast<uint32>(a) / static_cast<uint32>(b));
}

/** One head's queries from `row` on; none, when that is negative. */
struct Tile {
  int row, head, batch, headOfAll;

  /** The tile of a number. Under a causal mask those with the most keys come first. */
  static __device__ __forceinline__ Tile of(const HopperForwardParams& p, int number) {
    const int perBand = p.rowTiles * p.band, band = quotient(number, perBand), inBand = number - band * perBand;
    const int width = min(p.band, p.headsTotal - band * p.band);
    const int rowTile = quotient(inBand, width), headOfAll = band * p.band + inBand - rowTile * width;
    const int batch = quotient(headOfAll, p.heads);
    return {(CAUSAL ? p.rowTiles - 1 - rowTile : rowTile) * kRows, headOfAll - batch * p.heads, batch, headOfAll};
  }

  static __device__ __forceinline__ Tile none() { return {-1, 0, 0, 0}; }

  /** Through shared memory, for to calculate it takes longer than to hand it on. */
  __device__ __forceinline__ void leave(unsigned address) const {
    asm volatile("st.shared.v4.s32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(row), "r"(head), "r"(batch),
                 "r"(headOfAll)
                 : "memory");
  }
  static __device__ __forceinline__ Tile left(unsigned address) {
    Tile tile;
    asm volatile("ld.shared.v4.s32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(tile.row), "=r"(tile.head), "=r"(tile.batch), "=r"(tile.headOfAll)
                 : "r"(address)
                 : "memory");
    return tile;
  }

  /** The keys below this one are all that the queries from `row` on, `rows` of them, see. */
  static __device__ __forceinline__ int visible_keys(const HopperForwardParams& p, int row, int rows) {
    if (row >= p.queries) return 0;
    return CAUSAL ? max(0, min(row + rows, p.queries) + p.keys - p.queries) : p.keys;
  }

  /** Blocks of keys that the tile takes from this block of threads; a warpgroup may need fewer of them. */
  __device__ __forceinline__ Span blocks(const HopperForwardParams& p) const {
    const int all = ceil_div(visible_keys(p, row, kRows), BLOCK_N);
    if (SPLITS == 1) return {0, all};
    const int share = ceil_div(all, SPLITS), first = min(all, static_cast<int>(blockIdx.x) % SPLITS * share);
    return {first, min(all, first + share)};
  }
};

/**
 * Deals tiles out to the blocks of the grid: each one's first by its number, the others to the first block that asks.
 * Blocks that share a tile have one alone.
 */
struct TileQueue {
  const HopperForwardParams& p;
  bool started = false;

  __device__ __forceinline__ explicit TileQueue(const HopperForwardParams& p) : p(p) {}

  /** The next tile's number, or -1. */
  __device__ __forceinline__ int take() {
    const int blocks = gridDim.x;
    if (!started) {
      started = true;
      return blockIdx.x / SPLITS;
    }
    if (SPLITS > 1 || p.tiles <= blocks) return -1;
    const int tile = atomicAdd(p.nextTile, 1) + blocks;
    // Each block's last request finds no tile: this is the last of those, and leaves zero for the next launch.
    if (tile == p.tiles + blocks - 1) *p.nextTile = 0;
    return tile < p.tiles ? tile : -1;
  }
};

}  // namespace

#endif
