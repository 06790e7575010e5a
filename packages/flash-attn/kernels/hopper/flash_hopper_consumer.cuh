// What a warpgroup that calculates does in flash_hopper_forward.cu, from a tile's queries to its outputs.
#ifndef ROOFLINE_FLASH_HOPPER_CONSUMER_CUH
#define ROOFLINE_FLASH_HOPPER_CONSUMER_CUH

#include "flash_hopper_join.cuh"
#include "flash_hopper_softmax.cuh"

namespace {

constexpr bool kTurns = WARPGROUPS > 1;

/** A warpgroup's 64 queries. */
struct Consumer : Softmax {
  const SharedMemory memory;
  const int warpgroup;
  Ring<STAGES> keys, values;
#if Q_IN_REGISTERS
  uint32 query[HEAD_DIM / 4];
#endif

  __device__ __forceinline__ Consumer(const HopperForwardParams& p, const SharedMemory& memory, int warpgroup)
      : Softmax(p), memory(memory), warpgroup(warpgroup) {}

  // Turns at issuing products go around the warpgroups.
  __device__ __forceinline__ void wait_for_turn() {
    if (kTurns) threads_sync(1 + warpgroup, 256);
  }
  __device__ __forceinline__ void pass_turn() {
    if (kTurns) threads_arrive(1 + (warpgroup == WARPGROUPS - 1 ? 0 : warpgroup + 1), 256);
  }

  __device__ __forceinline__ void wait_for_keys() { barrier_wait(memory.key_filled(keys.stage), keys.parity); }
  __device__ __forceinline__ void wait_for_values() { barrier_wait(memory.value_filled(values.stage), values.parity); }
  // Each warp for itself, because each waits for the products on its own.
  __device__ __forceinline__ void release_keys() {
    if (lane == 0) barrier_arrive(memory.key_emptied(keys.stage));
    keys.advance();
  }
  __device__ __forceinline__ void release_values() {
    if (lane == 0) barrier_arrive(memory.value_emptied(values.stage));
    values.advance();
  }

  // The warp's 16 rows and 16 columns of Q as mma takes them.
  __device__ __forceinline__ void load_query_fragment(uint32 (&fragment)[4], int step) const {
    const unsigned source =
        memory.query(warpgroup) + piece_offset<64>(thread / 32 * 16 + lane % 16, 2 * step + lane / 16);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
                 : "r"(source));
  }

  __device__ __forceinline__ void load_queries() {
#if Q_IN_REGISTERS
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 16; i++) {
      uint32 fragment[4];
      load_query_fragment(fragment, i);
#pragma unroll
      for (int j = 0; j < 4; j++) query[4 * i + j] = fragment[j];
    }
#endif
  }

  /** scores = Q Kᵀ of the keys that are filled in. */
  __device__ __forceinline__ void start_scores(float (&scores)[kScores]) {
    const uint64 k = tile_descriptor(memory.key(keys.stage));
#if !Q_IN_REGISTERS
    const uint64 q = tile_descriptor(memory.query(warpgroup));
#endif
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 16; i++) {
#if Q_IN_REGISTERS
      Product<BLOCK_N>::of_registers<0>(scores, query + 4 * i, k + column_step<BLOCK_N>(i), i > 0);
#else
      Product<BLOCK_N>::of_shared<0, 0>(scores, q + column_step<64>(i), k + column_step<BLOCK_N>(i), i > 0);
#endif
    }
    multiply_commit();
  }

  /** output += P V of the values that are filled in. */
  __device__ __forceinline__ void start_outputs(float (&output)[kOutputs], const uint32 (&weights)[kWeights]) {
    const uint64 v = tile_descriptor(memory.value(values.stage), BLOCK_N * kPitch);
#pragma unroll
    for (int i = 0; i < BLOCK_N / 16; i++) {
      Product<HEAD_DIM>::of_registers<1>(output, weights + 4 * i, v + row_step(i), 1);
    }
    multiply_commit();
  }

  /** The scores of this warp's 16 rows once more, from Q and K in shared memory. */
  __device__ __forceinline__ void scores_again(float (&scores)[kScores]) {
#pragma unroll
    for (int i = 0; i < kScores; i++) scores[i] = 0.0f;
#pragma unroll 1
    for (int i = 0; i < HEAD_DIM / 16; i++) {
      uint32 q[4];
      load_query_fragment(q, i);
#pragma unroll
      for (int n = 0; n < BLOCK_N / 16; n++) {
        uint32 k[4];
        const int key = n * 16 + lane / 16 * 8 + lane % 8;
        const unsigned source = memory.key(keys.stage) + piece_offset<BLOCK_N>(key, 2 * i + lane / 8 % 2);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(k[0]), "=r"(k[1]), "=r"(k[2]), "=r"(k[3])
                     : "r"(source));
#pragma unroll
        for (int half = 0; half < 2; half++) {
          float* s = scores + n * 8 + half * 4;
          asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." PTX_NAME(ELEMENT) "." PTX_NAME(ELEMENT) ".f32"
                       " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                       : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
                       : "r"(q[0]), "r"(q[1]), "r"(q[2]), "r"(q[3]), "r"(k[2 * half]), "r"(k[2 * half + 1]));
        }
      }
    }
    __syncwarp();  // one lane will signal for all of them that the keys have been read
  }

  /** The weights of the first block that the queries see. */
  __device__ __forceinline__ void first_block(float (&scores)[kScores], uint32 (&weights)[kWeights], int firstRow,
                                              int block, bool masked) {
    wait_for_keys();
    multiply_fence();
    start_scores(scores);
    multiply_wait<0>();
    pin(scores);
    release_keys();
    if (masked) mask(scores, firstRow, block);
    take_maximum<true>(scores);
    exponentiate(scores);
    pack(scores, weights);
  }

  /** The weights of one block, while those of the block after it are summed up with their values. */
  template <bool kMasked>
  __device__ __forceinline__ void next_block(float (&scores)[kScores], uint32 (&weights)[kWeights],
                                             float (&output)[kOutputs], int firstRow, int block) {
    constexpr bool kTakeMaximum = EXACT_MAXIMUM || kMasked;
    wait_for_keys();
    wait_for_turn();
    pin(weights);
    pin(output);
    multiply_fence();
    start_scores(scores);
    wait_for_values();
    // The outputs may have been rescaled inside a branch: without this fence products are serialised.
    multiply_fence();
    start_outputs(output, weights);
    pass_turn();
    multiply_wait<1>();
    pin(scores);
    if (kTakeMaximum) {
      release_keys();
      if (kMasked) mask(scores, firstRow, block);
      take_maximum<false>(scores);
      exponentiate(scores);
    }
    multiply_wait<0>();
    pin(output);
    pin(weights);
    release_values();
    if (kTakeMaximum) {
      pack(scores, weights);
    } else {
      moved = false;
      if (!try_shift(scores, weights)) {
        scores_again(scores);
        take_maximum<false>(scores);
        exponentiate(scores);
        pack(scores, weights);
      }
      release_keys();
    }
    rescale(output);
  }

  __device__ __forceinline__ void last_values(float (&output)[kOutputs], uint32 (&weights)[kWeights]) {
    wait_for_values();
    pin(weights);
    pin(output);
    multiply_fence();
    start_outputs(output, weights);
    multiply_wait<0>();
    pin(output);
    pin(weights);
    release_values();
  }

  /** Passes over blocks that other warpgroups of the tile see. Every warpgroup has a turn for each block but the first. */
  __device__ __forceinline__ void skip(int blocks, int turns) {
    for (int i = 0; i < blocks; i++) {
      if (i < turns) {
        wait_for_turn();
        pass_turn();
      }
      wait_for_keys();
      release_keys();
      wait_for_values();
      release_values();
    }
  }

  /** The next tile's queries may come. */
  __device__ __forceinline__ void release_queries() { barrier_arrive(memory.query_emptied(warpgroup)); }

#if SPLITS == 1
  /** Writes the log-sum-exps; `sum` becomes the factor of the outputs. */
  __device__ __forceinline__ void finish_rows(const Tile& tile, int firstRow) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
      sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 1);
      sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 2);
      const int query = firstRow + row() + 8 * r;
      if (lane % 4 == 0 && query < p.queries) {
        p.lse[static_cast<int64>(tile.headOfAll) * p.queries + query] =
            sum[r] == 0.0f ? lowest<float>() : fmaf(shift[r], p.scale, __logf(sum[r]));
      }
      sum[r] = sum[r] == 0.0f ? 0.0f : 1.0f / sum[r];
    }
  }

  /** Writes the outputs by way of shared memory. */
  __device__ __forceinline__ void store_outputs(const float (&output)[kOutputs], const Tile& tile, int firstRow) {
    const int barrier = 1 + WARPGROUPS + warpgroup;
    if (!OUTPUT_OVER_QUERIES && thread == 0) wait_for_stores_to_read();
    threads_sync(barrier, 128);
    uint32 pairs[kOutputs / 2];
#pragma unroll
    for (int i = 0; i < kOutputs / 2; i++) {
      pairs[i] = pack_pair<ELEMENT>(output[2 * i] * sum[i % 2], output[2 * i + 1] * sum[i % 2]);
    }
    store_fragments<64, kPitch>(memory.output(warpgroup), 0, pairs);
    publish_shared();
    threads_sync(barrier, 128);
    if (thread == 0 && firstRow < p.queries) {
#pragma unroll
      for (int part = 0; part < kParts; part++) {
        store_part(p.o, memory.output(warpgroup) + part * 64 * kPitch, part, firstRow, tile.head, tile.batch);
      }
      commit_stores();
    }
    if (OUTPUT_OVER_QUERIES && thread == 0) {
      wait_for_stores_to_read();
      release_queries();
    }
  }
#else
  /** Brings together what the blocks of the cluster have summed up, each over its share of the keys, and writes it. */
  __device__ __forceinline__ void join(const float (&output)[kOutputs], const Tile& tile) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
      sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 1);
      sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 2);
    }
    const Join join{p, memory};
    threads_sync(2, 128);  // the ring is read no more
    join.leave(output, shift, sum);
    cluster_sync();
    join.gather(tile);
    publish_shared();
    threads_sync(2, 128);
    if (thread == 0) join.store(tile);
    cluster_sync();  // a block's memory lives as long as others read it
  }
#endif

  __device__ __forceinline__ void attend(const Tile& tile) {
    const Span blocks = tile.blocks(p);
    const int firstRow = tile.row + warpgroup * 64;
    const int end = min(ceil_div(Tile::visible_keys(p, firstRow, 64), BLOCK_N), blocks.end);
    const int own = max(0, end - blocks.first), skipped = blocks.end - blocks.first - own;
    // Blocks below this one are seen by all of the queries.
    const int unmasked = (CAUSAL ? max(0, min(firstRow + 1 + p.keys - p.queries, p.keys)) : p.keys) / BLOCK_N;
    const int clear = max(unmasked, blocks.first);
    skip(skipped, own > 0 ? skipped : skipped - 1);

    float scores[kScores], output[kOutputs];
    uint32 weights[kWeights];
#pragma unroll
    for (int i = 0; i < kOutputs; i++) output[i] = 0.0f;
    sum[0] = sum[1] = 0.0f;
    if (SPLITS > 1) shift[0] = shift[1] = lowest<float>();
    if (own > 0) {
      load_queries();
      int block = end - 1;
      first_block(scores, weights, firstRow, block, block >= unmasked);
      for (block--; block >= clear; block--) next_block<true>(scores, weights, output, firstRow, block);
#pragma unroll 1
      for (; block >= blocks.first; block--) next_block<false>(scores, weights, output, firstRow, block);
    }
    if (!OUTPUT_OVER_QUERIES) {
      __syncwarp();  // all of its lanes have read the tile and its queries
      if (lane == 0) release_queries();
    }
    if (own > 0) last_values(output, weights);
#if SPLITS > 1
    join(output, tile);
#else
    finish_rows(tile, firstRow);
    store_outputs(output, tile, firstRow);
#endif
  }

  __device__ __forceinline__ void run() {
    if (kTurns && warpgroup == 0) threads_arrive(1, 256);
    for (unsigned parity = 0;; parity ^= 1) {
      barrier_wait(memory.query_filled(warpgroup), parity);
      const Tile tile = Tile::left(memory.tile(warpgroup));
      if (tile.row < 0) break;
      attend(tile);
    }
    // Shared memory ends with the block.
    if (thread == 0) wait_for_stores_to_read();
  }
};

}  // namespace

#endif
