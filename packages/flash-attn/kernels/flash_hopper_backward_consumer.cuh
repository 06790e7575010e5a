// The warpgroups of flash_hopper_backward that calculate.
#ifndef ROOFLINE_FLASH_HOPPER_BACKWARD_CONSUMER_CUH
#define ROOFLINE_FLASH_HOPPER_BACKWARD_CONSUMER_CUH

#include "flash_hopper_backward_order.cuh"

namespace {

constexpr int kScores = BLOCK_M / 2;  // floats a thread holds of its warpgroup's 64 × BLOCK_M
constexpr int kGradients = HEAD_DIM / 2;

/** dV is started before dS is known, while the registers suffice for P twice, as floats and as pairs. */
constexpr bool kEarlyGradV = BLOCK_M == 64;

__device__ __forceinline__ float2 load_shared_pair(unsigned address) {
  float2 x;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x.x), "=f"(x.y) : "r"(address));
  return x;
}

__device__ __forceinline__ void store_shared(unsigned address, const float* x) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(address), "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3])
               : "memory");
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
  Ring<SUM_BUFFERS> sumsRing;
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

  /** Likewise, for operands in registers that have just been calculated. */
  __device__ __forceinline__ void start_gradient_pinned(float (&gradient)[kGradients], uint32 (&pairs)[kScores / 2],
                                                        unsigned b) const {
    pin(pairs);
    pin(gradient);
    multiply_fence();
    start_gradient(gradient, pairs, b);
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
        const float weight = fast_exp2(fmaf(scores[i + j], p.scaleLog2, j % 2 ? -lse.y : -lse.x));
        scores[i + j] = kMasked && i * 2 + j % 2 < first[j / 2] ? 0.0f : weight;
      }
    }
  }

  /** Of Pᵀ its pairs. */
  __device__ __forceinline__ void pack_weights(const float (&weights)[kScores], uint32 (&pairs)[kScores / 2]) const {
#pragma unroll
    for (int i = 0; i < kScores; i += 2) pairs[i / 2] = pack_pair<ELEMENT>(weights[i], weights[i + 1]);
  }

  /** Of Pᵀ and dPᵀ the pairs of dSᵀ. */
  __device__ __forceinline__ void pack_scores(const float (&weights)[kScores], const float (&products)[kScores],
                                              uint32 (&pairs)[kScores / 2]) const {
    const unsigned rows = memory.delta(ring.stage) + lane % 4 * 8;
#pragma unroll
    for (int i = 0; i < kScores; i += 4) {
      const float2 delta = load_shared_pair(rows + i * 8);
#pragma unroll
      for (int j = i; j < i + 4; j += 2) {
        pairs[j / 2] = pack_pair<ELEMENT>(weights[j] * (products[j] - delta.x),
                                          weights[j + 1] * (products[j + 1] - delta.y));
      }
    }
  }

  /** Adds the sums to those of other blocks: in order through the writer, or else at once. */
  __device__ __forceinline__ void add_sums(float (&sums)[kSumsOfThread], int head, int rowTile) {
    const int headOfAll = tile.batch * p.heads + head, offset = fragment_offset(warpgroup);
    float* const inMemory = sums_of(p, headOfAll, rowTile) + offset;
    if constexpr (!kOrdered) {
#pragma unroll
      for (int i = 0; i < kSumsOfThread / 4; i++) add_to_memory(inMemory + i * 512, sums + 4 * i);
    } else {
      barrier_wait(memory.sums_emptied(sumsRing.stage), sumsRing.parity ^ 1);
      if (tile.is_last_of(p, rowTile)) {
        finish_sums(sums, inMemory, turn_of(p, headOfAll, rowTile));
      } else {
        const unsigned target = memory.sums(sumsRing.stage) + 4 * offset;
#pragma unroll
        for (int i = 0; i < kSumsOfThread / 4; i++) store_shared(target + i * 2048, sums + 4 * i);
      }
      publish_shared();
      __syncwarp();
      if (lane == 0) barrier_arrive(memory.sums_filled(sumsRing.stage));
      sumsRing.advance();
    }
  }

  /** The last block that adds to a tile: these rows and columns of gradQ in shared memory, as TMA stores them. */
  __device__ __forceinline__ void finish_sums(float (&sums)[kSumsOfThread], const float* inMemory,
                                              const int32* turn) const {
    if (tile.number > 0) {
      if (lane == 0) wait_for_turn(turn, tile.number);
      __syncwarp();
#pragma unroll
      for (int i = 0; i < kSumsOfThread; i += 4) {
        const Vector<float, 4> before = load_vector<4>(inMemory + i * 128);
#pragma unroll
        for (int j = 0; j < 4; j++) sums[i + j] += before[j];
      }
    }
    uint32 pairs[kSumsOfThread / 2];
#pragma unroll
    for (int i = 0; i < kSumsOfThread / 2; i++) {
      pairs[i] = pack_pair<ELEMENT>(sums[2 * i] * p.scale, sums[2 * i + 1] * p.scale);
    }
    const int firstPart = kHalvesColumns ? warpgroup * (kSumColumns / CHUNK) : 0;
    store_fragments<BLOCK_M, kPitch>(memory.sums(sumsRing.stage) + firstPart * BLOCK_M * kPitch,
                                     kHalvesColumns ? 0 : warpgroup * 64, pairs);
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
    pack_weights(scores, weightPairs);
    if (kEarlyGradV) start_gradient_pinned(gradV, weightPairs, gradients);
    multiply_wait<kEarlyGradV ? 1 : 0>();
    pin(products);
    pack_scores(scores, products, scorePairs);

    // Two buffers: what the other warpgroup may still read is of the step before.
    const unsigned target = memory.score(buffer);
    store_fragments<kBlockN, 128>(target, warpgroup * 64, scorePairs);
    publish_shared();
    pin(scorePairs);
    pin(gradK);
    if (!kEarlyGradV) start_gradient_pinned(gradV, weightPairs, gradients);
    threads_sync(1, kConsumers);
    multiply_fence();
    start_sums(sums, target);
    start_gradient(gradK, scorePairs, queries);
    multiply_wait<1>();
    pin(gradV);
    pin(weightPairs);
    pin(sums);
    __syncwarp();
    if (lane == 0) barrier_arrive(memory.grad_o_emptied(ring.stage));
    add_sums(sums, head, rowTile);
    multiply_wait<0>();
    pin(gradK);
    pin(scorePairs);
    __syncwarp();
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
        const unsigned source = target + (part * kBlockN + warpgroup * 64) * kPitch;
        store_part<kTileCopies>(map, source, part, first, tile.keyHead, tile.batch);
      }
      commit_stores();
    }
  }

  __device__ __forceinline__ void run() {
    float gradV[kGradients], gradK[kGradients];
#pragma unroll
    for (int i = 0; i < kGradients; i++) gradV[i] = gradK[i] = 0.0f;
    const int clear = tile.first_clear(p);
    const int group = p.heads / p.keyHeads;
    barrier_wait(memory.keys_filled(), 0);
#pragma unroll 1
    for (int head = tile.keyHead * group; head < (tile.keyHead + 1) * group; head++) {
      int rowTile = p.rowTiles - 1;
#pragma unroll 1
      for (; rowTile >= clear; rowTile--) step<false>(gradV, gradK, head, rowTile);
#pragma unroll 1
      for (; rowTile >= tile.firstRowTile; rowTile--) step<true>(gradV, gradK, head, rowTile);
    }
    threads_sync(1, kConsumers);
    store(gradV, memory.value(), p.gradV, 1.0f);
    store(gradK, memory.key(), p.gradK, p.scale);
    if (thread == 0) wait_for_stores();
  }
};

}  // namespace

#endif
