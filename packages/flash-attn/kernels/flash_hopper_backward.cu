// FlashAttention's backward pass on Hopper's tensor cores (sm_90a), for bfloat16 and float16 with float32 sums: gradV,
// gradK, and the sums of gradQ. flash_hopper_backward_rows.cu has what goes before and behind it.
//
//     P = exp(S - lse), dV = Pᵀ dO, dP = dO Vᵀ, dS = P ∘ (dP - delta), dK = scale · dSᵀ Q, dQ = scale · dS K
//
// A block has one tile of 128 keys of a head of k and v, 64 for each of two warpgroups, and goes over the tiles of BLOCK_M
// queries that see it, of every head of q that shares it. Scores and dP are calculated with keys as rows (Sᵀ = K Qᵀ), so
// that Pᵀ and dSᵀ go into dV and dK straight from registers. dSᵀ goes to shared memory, too, from where dQ = dS K takes it
// transposed. dQ of a tile of queries is a sum over blocks: each adds its part in float32 to device memory, in the order
// of the products' fragments, so that the adds are coalesced. Their order is chance: gradQ's last bits are not
// reproducible.
//
// kernel   flash_hopper_backward(HopperBackwardParams)
//   grid     (keyTiles · keyHeads · batch, 1, 1)
//   block    (384, 1, 1): two warpgroups that calculate, and one thread that feeds them by TMA
//   dynamic shared memory, with D = HEAD_DIM rounded up to CHUNK
//            1024 + 512 · D + 4 · STAGES · BLOCK_M · D + 512 · BLOCK_M + 8 · STAGES · BLOCK_M + 256 bytes
//   target   sm_90a
// macros
//   ELEMENT    bfloat16 | float16
//   HEAD_DIM   64 | 80 | 128
//   CHUNK      16 | 32 | 64: columns of a part of a tile
//   BLOCK_M    128, or 64 for HEAD_DIM 128: queries of a tile
//   STAGES     of the rings of queries and of gradO
//   CAUSAL     1: query i sees the keys j <= i + keys - queries
//   CONSUMER_REGISTERS, PRODUCER_REGISTERS   a thread's

#include "flash_hopper_backward.cuh"

namespace {

constexpr int kKeyBytes = kTileBytes<kBlockN>;
constexpr int kQueryBytes = kTileBytes<BLOCK_M>;
constexpr int kScoreBytes = BLOCK_M * kBlockN * 2;
constexpr int kRowBytes = BLOCK_M * 4;  // of lseLog2 or delta

constexpr int kScores = BLOCK_M / 2;  // floats a thread holds of its warpgroup's 64 × BLOCK_M
constexpr int kGradients = HEAD_DIM / 2;

// Shared memory, from an address that is a multiple of 1024 on.
constexpr int kValueOffset = kKeyBytes;
constexpr int kQueryOffset = kValueOffset + kKeyBytes;
constexpr int kGradOOffset = kQueryOffset + STAGES * kQueryBytes;
constexpr int kScoreOffset = kGradOOffset + STAGES * kQueryBytes;
constexpr int kLseOffset = kScoreOffset + 2 * kScoreBytes;
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
  __device__ __forceinline__ unsigned lse(int stage) const { return base + kLseOffset + stage * kRowBytes; }
  __device__ __forceinline__ unsigned delta(int stage) const { return base + kDeltaOffset + stage * kRowBytes; }
  __device__ __forceinline__ unsigned query_filled(int stage) const { return base + kBarrierOffset + 8 * stage; }
  __device__ __forceinline__ unsigned query_emptied(int stage) const { return query_filled(STAGES + stage); }
  __device__ __forceinline__ unsigned grad_o_filled(int stage) const { return query_filled(2 * STAGES + stage); }
  __device__ __forceinline__ unsigned grad_o_emptied(int stage) const { return query_filled(3 * STAGES + stage); }
  __device__ __forceinline__ unsigned keys_filled() const { return query_filled(4 * STAGES); }
};

/** A tile of keys, and the tiles of queries that see some of it. Under a causal mask those with the most come first. */
struct KeyTile {
  int key, keyHead, batch, firstRowTile;

  __device__ __forceinline__ explicit KeyTile(const HopperBackwardParams& p) {
    const int perBand = p.keyTiles * p.band, band = blockIdx.x / perBand, inBand = blockIdx.x - band * perBand;
    const int width = min(p.band, p.keyHeadsTotal - band * p.band);
    const int tile = inBand / width, keyHeadOfAll = band * p.band + inBand - tile * width;
    key = tile * kBlockN;
    batch = keyHeadOfAll / p.keyHeads;
    keyHead = keyHeadOfAll - batch * p.keyHeads;
    firstRowTile = CAUSAL ? max(0, key + p.queries - p.keys) / BLOCK_M : 0;
  }
};

// ---- producer ----------------------------------------------------------------------------------------------------

/** Copies a tile's lseLog2 or delta, and counts its bytes at `barrier`. */
__device__ __forceinline__ void copy_rows(const float* source, unsigned target, unsigned barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(target),
               "l"(source), "n"(kRowBytes), "r"(barrier)
               : "memory");
}

struct Producer {
  const HopperBackwardParams& p;
  const SharedMemory memory;
  const KeyTile& tile;
  Ring<STAGES> ring;

  __device__ __forceinline__ void load_keys() {
    barrier_expect(memory.keys_filled(), 2 * kKeyBytes);
    copy_tile<kBlockN>(p.k, memory.key(), memory.keys_filled(), tile.key, tile.keyHead, tile.batch);
    copy_tile<kBlockN>(p.v, memory.value(), memory.keys_filled(), tile.key, tile.keyHead, tile.batch);
  }

  __device__ __forceinline__ void load_queries(int head, int rowTile) {
    const int row = rowTile * BLOCK_M;
    const int64 at = static_cast<int64>(tile.batch * p.heads + head) * p.rowTiles * BLOCK_M + row;
    const unsigned queries = memory.query_filled(ring.stage), gradients = memory.grad_o_filled(ring.stage);
    barrier_wait(memory.query_emptied(ring.stage), ring.parity ^ 1);
    barrier_expect(queries, kQueryBytes + kRowBytes);
    copy_tile<BLOCK_M>(p.q, memory.query(ring.stage), queries, row, head, tile.batch);
    copy_rows(p.lseLog2 + at, memory.lse(ring.stage), queries);
    barrier_wait(memory.grad_o_emptied(ring.stage), ring.parity ^ 1);
    barrier_expect(gradients, kQueryBytes + kRowBytes);
    copy_tile<BLOCK_M>(p.gradO, memory.grad_o(ring.stage), gradients, row, head, tile.batch);
    copy_rows(p.delta + at, memory.delta(ring.stage), gradients);
    ring.advance();
  }

  __device__ __forceinline__ void run() {
    load_keys();
    const int group = p.heads / p.keyHeads;
    for (int head = tile.keyHead * group; head < (tile.keyHead + 1) * group; head++) {
      for (int rowTile = tile.firstRowTile; rowTile < p.rowTiles; rowTile++) load_queries(head, rowTile);
    }
  }
};

// ---- consumers ---------------------------------------------------------------------------------------------------

__device__ __forceinline__ float2 load_shared_pair(unsigned address) {
  float2 x;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x.x), "=f"(x.y) : "r"(address));
  return x;
}

__device__ __forceinline__ void add_to_memory(float* address, const float* x) {
  asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(address), "f"(x[0]), "f"(x[1]), "f"(x[2]),
               "f"(x[3])
               : "memory");
}

/**
 * A warpgroup's 64 keys. Of each 64 × BLOCK_M product with keys as rows this thread has the keys key() and key() + 8,
 * and the queries 8i + 2 · (lane % 4) + {0, 1}.
 */
struct Consumer {
  const HopperBackwardParams& p;
  const SharedMemory memory;
  const KeyTile& tile;
  const int warpgroup, thread, lane;
  Ring<STAGES> ring;
  int buffer = 0;

  __device__ __forceinline__ Consumer(const HopperBackwardParams& p, const SharedMemory& memory, const KeyTile& tile,
                                      int warpgroup)
      : p(p), memory(memory), tile(tile), warpgroup(warpgroup), thread(threadIdx.x % 128), lane(threadIdx.x % 32) {}

  __device__ __forceinline__ int key() const { return tile.key + warpgroup * 64 + thread / 32 * 16 + lane / 4; }

  /** product = A Bᵀ for this warpgroup's keys or values A and the tile's queries or their gradients B. */
  __device__ __forceinline__ void start_product(float (&product)[kScores], unsigned a, unsigned b) const {
    const uint64 left = tile_descriptor(a + warpgroup * 64 * kPitch), right = tile_descriptor(b);
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 16; i++) {
      Product<BLOCK_M>::of_shared<0, 0>(product, left + column_step<kBlockN>(i), right + column_step<BLOCK_M>(i), i > 0);
    }
    multiply_commit();
  }

  /** gradient += A B for the pairs A = Pᵀ or dSᵀ and the tile's gradO or queries B. */
  __device__ __forceinline__ void start_gradient(float (&gradient)[kGradients], const uint32 (&pairs)[kScores / 2],
                                                 unsigned b) const {
    const uint64 right = tile_descriptor(b, BLOCK_M * kPitch);
#pragma unroll
    for (int i = 0; i < BLOCK_M / 16; i++) {
      Product<HEAD_DIM>::of_registers<1>(gradient, pairs + 4 * i, right + row_step(i), 1);
    }
    multiply_commit();
  }

  /** sums = dS K: of all the keys, hence of what both warpgroups have written, for this warpgroup's part of dQ. */
  __device__ __forceinline__ void start_sums(float (&sums)[kSumsOfThread], unsigned scores) const {
    const uint64 left = tile_descriptor<128>(scores + (kHalvesColumns ? 0 : warpgroup * kBlockN * 128));
    const unsigned firstPart = kHalvesColumns ? warpgroup * (kSumColumns / CHUNK) : 0;
    const uint64 right = tile_descriptor(memory.key() + firstPart * kBlockN * kPitch, kBlockN * kPitch);
#pragma unroll
    for (int i = 0; i < kBlockN / 16; i++) {
      Product<kSumColumns>::of_shared<1, 1>(sums, left + row_step<128>(i), right + row_step(i), i > 0);
    }
    multiply_commit();
  }

  /** Sᵀ becomes Pᵀ in place; 0 where a query does not see a key, or either does not exist. */
  template <bool kMasked>
  __device__ __forceinline__ void exponentiate(float (&scores)[kScores], int firstQuery) const {
    const unsigned rows = memory.lse(ring.stage) + lane % 4 * 8;
    // Counted from the query of scores[0] on, the first that sees each of the two keys.
    int first[2];
#pragma unroll
    for (int r = 0; r < 2; r++) {
      const int k = key() + 8 * r;
      const int causalFirst = k + p.queries - p.keys - firstQuery - lane % 4 * 2;
      first[r] = k >= p.keys ? BLOCK_M : CAUSAL ? causalFirst : 0;
    }
#pragma unroll
    for (int i = 0; i < kScores; i += 4) {
      const float2 lse = load_shared_pair(rows + i * 8);
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const float weight = exp2_approximate(fmaf(scores[i + j], p.scaleLog2, j % 2 ? -lse.y : -lse.x));
        scores[i + j] = kMasked && i * 2 + j % 2 < first[j / 2] ? 0.0f : weight;
      }
    }
  }

  /** Of Pᵀ and dPᵀ the pairs of Pᵀ and of dSᵀ. */
  __device__ __forceinline__ void pack_gradients(const float (&weights)[kScores], const float (&products)[kScores],
                                                 uint32 (&weightPairs)[kScores / 2],
                                                 uint32 (&scorePairs)[kScores / 2]) const {
    const unsigned rows = memory.delta(ring.stage) + lane % 4 * 8;
#pragma unroll
    for (int i = 0; i < kScores; i += 4) {
      const float2 delta = load_shared_pair(rows + i * 8);
#pragma unroll
      for (int j = i; j < i + 4; j += 2) {
        weightPairs[j / 2] = pack_pair<ELEMENT>(weights[j], weights[j + 1]);
        scorePairs[j / 2] = pack_pair<ELEMENT>(weights[j] * (products[j] - delta.x),
                                               weights[j + 1] * (products[j + 1] - delta.y));
      }
    }
  }

  /** One tile of a head's queries. */
  template <bool kMasked>
  __device__ __forceinline__ void step(float (&gradV)[kGradients], float (&gradK)[kGradients], int head, int rowTile) {
    float scores[kScores], products[kScores], sums[kSumsOfThread];
    uint32 weightPairs[kScores / 2], scorePairs[kScores / 2];
    const unsigned queries = memory.query(ring.stage), gradients = memory.grad_o(ring.stage);

    barrier_wait(memory.query_filled(ring.stage), ring.parity);
    multiply_fence();
    start_product(scores, memory.key(), queries);
    barrier_wait(memory.grad_o_filled(ring.stage), ring.parity);
    multiply_fence();
    start_product(products, memory.value(), gradients);
    multiply_wait<1>();
    pin(scores);
    exponentiate<kMasked>(scores, rowTile * BLOCK_M);
    multiply_wait<0>();
    pin(products);
    pack_gradients(scores, products, weightPairs, scorePairs);

    // Two buffers: what the other warpgroup may still read is of the step before.
    const unsigned target = memory.score(buffer);
    store_fragments<kBlockN, 128>(target, warpgroup * 64, scorePairs);
    publish_shared();
    pin(scorePairs);
    pin(weightPairs);
    pin(gradV);
    pin(gradK);
    multiply_fence();
    start_gradient(gradV, weightPairs, gradients);
    threads_sync(1, kConsumers);
    multiply_fence();
    start_sums(sums, target);
    start_gradient(gradK, scorePairs, queries);
    multiply_wait<1>();
    pin(gradV);
    pin(weightPairs);
    pin(sums);
    if (lane == 0) barrier_arrive(memory.grad_o_emptied(ring.stage));
    float* const fragments = fragments_of(p, tile.batch * p.heads + head, rowTile, warpgroup);
#pragma unroll
    for (int i = 0; i < kSumsOfThread / 4; i++) add_to_memory(fragments + i * 512, sums + 4 * i);
    multiply_wait<0>();
    pin(gradK);
    pin(scorePairs);
    if (lane == 0) barrier_arrive(memory.query_emptied(ring.stage));
    buffer ^= 1;
    ring.advance();
  }

  /** Writes factor · gradient by way of the shared memory of the keys or values, which have been read. */
  __device__ __forceinline__ void store(const float (&gradient)[kGradients], unsigned target, const TensorMap& map,
                                        float factor) const {
    uint32 pairs[kGradients / 2];
#pragma unroll
    for (int i = 0; i < kGradients / 2; i++) {
      pairs[i] = pack_pair<ELEMENT>(gradient[2 * i] * factor, gradient[2 * i + 1] * factor);
    }
    store_fragments<kBlockN, kPitch>(target, warpgroup * 64, pairs);
    publish_shared();
    threads_sync(2 + warpgroup, 128);
    const int first = tile.key + warpgroup * 64;
    if (thread == 0 && first < p.keys) {
#pragma unroll
      for (int part = 0; part < kParts; part++) {
        store_part(map, target + (part * kBlockN + warpgroup * 64) * kPitch, part, first, tile.keyHead, tile.batch);
      }
      commit_stores();
    }
  }

  __device__ __forceinline__ void run() {
    float gradV[kGradients], gradK[kGradients];
#pragma unroll
    for (int i = 0; i < kGradients; i++) gradV[i] = gradK[i] = 0.0f;
    // From this tile of queries on, each query sees every key of the tile; without a mask: where all of them exist.
    const int lastKey = tile.key + kBlockN - 1;
    const int clear = lastKey >= p.keys ? p.rowTiles
                      : CAUSAL          ? ceil_div(max(0, lastKey + p.queries - p.keys), BLOCK_M)
                                        : 0;
    const int group = p.heads / p.keyHeads;
    barrier_wait(memory.keys_filled(), 0);
#pragma unroll 1
    for (int head = tile.keyHead * group; head < (tile.keyHead + 1) * group; head++) {
      int rowTile = tile.firstRowTile;
#pragma unroll 1
      for (; rowTile < min(clear, p.rowTiles); rowTile++) step<true>(gradV, gradK, head, rowTile);
#pragma unroll 1
      for (; rowTile < p.rowTiles; rowTile++) step<false>(gradV, gradK, head, rowTile);
    }
    threads_sync(1, kConsumers);
    store(gradV, memory.value(), p.gradV, 1.0f);
    store(gradK, memory.key(), p.gradK, p.scale);
    if (thread == 0) wait_for_stores();
  }
};

/** By one thread, before any other touches the barriers. */
__device__ __forceinline__ void start_barriers(const SharedMemory& memory) {
  for (int i = 0; i < STAGES; i++) {
    barrier_init(memory.query_filled(i), 1);
    barrier_init(memory.query_emptied(i), 4 * kWarpgroups);
    barrier_init(memory.grad_o_filled(i), 1);
    barrier_init(memory.grad_o_emptied(i), 4 * kWarpgroups);
  }
  barrier_init(memory.keys_filled(), 1);
  publish_barriers();
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    flash_hopper_backward(const __grid_constant__ HopperBackwardParams p) {
  extern __shared__ unsigned char shared[];
  const unsigned start = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  const SharedMemory memory{(start + 1023u) & ~1023u};
  if (threadIdx.x == 0) start_barriers(memory);
  __syncthreads();
  const KeyTile tile(p);
  // The same for a whole warp, and known as such to the compiler.
  const int warpgroup = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
  if (warpgroup == kWarpgroups) {
    give_up_registers<PRODUCER_REGISTERS>();
    if (threadIdx.x == kConsumers) Producer{p, memory, tile}.run();
  } else {
    take_registers<CONSUMER_REGISTERS>();
    Consumer(p, memory, tile, warpgroup).run();
  }
}
