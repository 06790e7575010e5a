// FlashAttention's forward pass on Hopper's tensor cores (sm_90a), for bfloat16 and float16 with float32 sums.
//
//     O = softmax(scale · Q Kᵀ + mask) V,   lse = log Σ exp(scale · q·k + mask)
//
// A persistent block takes tiles of 64 · WARPGROUPS queries from a counter, the longest first. One thread feeds it: Q, and
// blocks of BLOCK_N keys and values, from the last that the tile sees to the first, through rings of STAGES by TMA. Each
// warpgroup has 64 of the queries. While the tensor cores add P·V of one block, it turns the scores of the next one,
// which they have done before, into weights; warpgroups take turns at issuing products (FlashAttention-3, Shah et al.
// 2024, has both), so that one's softmax runs beside another's products. P never leaves registers.
//
// Softmax does not depend on what is subtracted from the scores. So a row's maximum is taken of its first block (and of
// masked ones), and then left as it is: later blocks need no maximum, no exchange between threads and no rescaling. The
// sum of a block's weights, needed anyway, tells when a row has outgrown it; then that warp calculates its scores again
// from Q and K, which still lie in shared memory, and takes the maximum after all. A weight near a row's largest score
// is then not exactly 1, and its rounding to ELEMENT would show where it dominates its row: the sum is therefore taken
// of the rounded weights, which O is a true average by.
//
// kernel   flash_hopper_forward(HopperForwardParams)
//   grid     (blocks, 1, 1), blocks at most tiles, and BLOCKS_PER_SM a multiprocessor
//   block    (128 · (WARPGROUPS + 1), 1, 1)
//   dynamic shared memory, with D = HEAD_DIM rounded up to CHUNK
//            1024 + 256 · WARPGROUPS · D + 4 · STAGES · BLOCK_N · D + 512 bytes
//   target   sm_90a
// macros
//   ELEMENT      bfloat16 | float16
//   HEAD_DIM     64 | 80 | 128
//   CHUNK        16 | 32 | 64: columns of a part of a tile
//   BLOCK_N      48 | 64 | 80 | 96 | 128: keys of a block
//   WARPGROUPS   1 to 4 that calculate
//   STAGES       of the rings of keys and of values
//   BLOCKS_PER_SM
//   CAUSAL       1: query i sees the keys j <= i + keys - queries
//   Q_IN_REGISTERS   1: Q is read from shared memory once a tile
//   CONSUMER_REGISTERS, PRODUCER_REGISTERS   a thread's
//   EXACT_MAXIMUM    1: every block takes the maximum (0)
//   SUM_ROUNDED      1: rows are summed over rounded weights (1)

#ifndef EXACT_MAXIMUM
#define EXACT_MAXIMUM 0
#endif
#ifndef SUM_ROUNDED
#define SUM_ROUNDED 1
#endif

#include "flash_hopper_forward.cuh"

namespace {

constexpr int kScores = BLOCK_N / 2;  // floats a thread holds of its warpgroup's 64 × BLOCK_N
constexpr int kWeights = BLOCK_N / 4;
constexpr int kOutputs = HEAD_DIM / 2;
constexpr bool kTurns = WARPGROUPS > 1;
constexpr float kInfinity = __builtin_huge_valf();

// A thread's part of a block's sum, below which no weight overflows ELEMENT, nor the sums float32.
constexpr float kOutgrown = sizeof(ELEMENT) == 2 && PTX_NAME(ELEMENT)[0] == 'f' ? 32768.0f : 4294967296.0f;

// ---- producer ----------------------------------------------------------------------------------------------------

struct Producer {
  const HopperForwardParams& p;
  const SharedMemory memory;
  Ring<STAGES> keys, values;
  unsigned queryParity = 1;

  __device__ __forceinline__ void load_keys(const Tile& tile, int block) {
    barrier_wait(memory.key_emptied(keys.stage), keys.parity ^ 1);
    barrier_expect(memory.key_filled(keys.stage), kKeyBytes);
    copy_tile<BLOCK_N>(p.k, memory.key(keys.stage), memory.key_filled(keys.stage), block * BLOCK_N, tile.keyHead,
                       tile.batch);
    keys.advance();
  }

  __device__ __forceinline__ void load_values(const Tile& tile, int block) {
    barrier_wait(memory.value_emptied(values.stage), values.parity ^ 1);
    barrier_expect(memory.value_filled(values.stage), kKeyBytes);
    copy_tile<BLOCK_N>(p.v, memory.value(values.stage), memory.value_filled(values.stage), block * BLOCK_N,
                       tile.keyHead, tile.batch);
    values.advance();
  }

  /** Tells a warpgroup the number of its next tile, once it has done with the queries before. */
  __device__ __forceinline__ void announce(int warpgroup, int number) {
    barrier_wait(memory.query_emptied(warpgroup), queryParity);
    asm volatile("st.shared.s32 [%0], %1;" ::"r"(memory.tile_number(warpgroup)), "r"(number) : "memory");
  }

  __device__ __forceinline__ void load_queries(const Tile& tile, int number) {
#pragma unroll
    for (int w = 0; w < WARPGROUPS; w++) {
      announce(w, number);
      barrier_expect(memory.query_filled(w), kQueryBytes);
      copy_tile<64>(p.q, memory.query(w), memory.query_filled(w), tile.row + w * 64, tile.head, tile.batch);
    }
    queryParity ^= 1;
  }

  __device__ __forceinline__ void run() {
    TileQueue queue(p);
    for (int number = queue.take(); number >= 0; number = queue.take()) {
      const Tile tile(p, number);
      const int blocks = tile.blocks(p);
      if (blocks > 0) load_keys(tile, blocks - 1);
      load_queries(tile, number);
      for (int block = blocks - 1; block >= 0; block--) {
        if (block > 0) load_keys(tile, block - 1);
        load_values(tile, block);
      }
    }
#pragma unroll
    for (int w = 0; w < WARPGROUPS; w++) {
      announce(w, -1);
      barrier_arrive(memory.query_filled(w));
    }
  }
};

// ---- consumers ---------------------------------------------------------------------------------------------------

/** A warpgroup's 64 queries. This thread has parts of the rows row() and row() + 8 of them: index 0 and 1 below. */
struct Consumer {
  const HopperForwardParams& p;
  const SharedMemory memory;
  const int warpgroup, thread, lane;
  Ring<STAGES> keys, values;
  float shift[2];   // what is subtracted from a row's scores: their maximum, or one that was
  float sum[2];     // this thread's part of the row's weights
  float factor[2];  // of what was summed before the maximum moved
  bool moved;
#if Q_IN_REGISTERS
  uint32 query[HEAD_DIM / 4];
#endif

  __device__ __forceinline__ Consumer(const HopperForwardParams& p, const SharedMemory& memory, int warpgroup)
      : p(p), memory(memory), warpgroup(warpgroup), thread(threadIdx.x % 128), lane(threadIdx.x % 32) {}

  __device__ __forceinline__ int row() const { return thread / 32 * 16 + lane / 4; }

  // Turns at issuing products go around the warpgroups.
  __device__ __forceinline__ void wait_for_turn() {
    if (kTurns) threads_sync(1 + warpgroup, 256);
  }
  __device__ __forceinline__ void pass_turn() {
    if (kTurns) threads_arrive(1 + (warpgroup == WARPGROUPS - 1 ? 0 : warpgroup + 1), 256);
  }

  __device__ __forceinline__ void wait_for_keys() { barrier_wait(memory.key_filled(keys.stage), keys.parity); }
  __device__ __forceinline__ void wait_for_values() { barrier_wait(memory.value_filled(values.stage), values.parity); }
  // Each warp for itself, for its wait for the products is its own.
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
  }

  /** Scores of keys that a query does not see become -inf. */
  __device__ __forceinline__ void mask(float (&scores)[kScores], int firstRow, int block) {
    const int first = block * BLOCK_N + lane % 4 * 2;  // the key of scores[0]
    int last[2];                                       // the last visible key of each row, counted from there
#pragma unroll
    for (int r = 0; r < 2; r++) {
      const int causalLast = firstRow + row() + 8 * r + p.keys - p.queries;
      last[r] = (CAUSAL ? min(causalLast, p.keys - 1) : p.keys - 1) - first;
    }
#pragma unroll
    for (int i = 0; i < kScores; i++) {
      if (i / 4 * 8 + i % 2 > last[i / 2 % 2]) scores[i] = -kInfinity;
    }
  }

  // -inf - -inf is kept away from rows that have seen no key: their weights are 0.
  __device__ __forceinline__ float finite_shift(int r) const { return shift[r] == -kInfinity ? 0.0f : shift[r]; }

  __device__ __forceinline__ float weight_of(float score, float shiftLog2) const {
    return exp2_approximate(fmaf(score, p.scaleLog2, shiftLog2));
  }

  /** The largest scores of the rows join the maximum of those before. */
  template <bool kFirst>
  __device__ __forceinline__ void take_maximum(const float (&scores)[kScores]) {
    float largest[2] = {fmaxf(scores[0], scores[1]), fmaxf(scores[2], scores[3])};
#pragma unroll
    for (int i = 4; i < kScores; i += 2) {
      largest[i / 2 % 2] = fmaxf(largest[i / 2 % 2], fmaxf(scores[i], scores[i + 1]));
    }
    moved = false;
#pragma unroll
    for (int r = 0; r < 2; r++) {
      // Four threads share a row.
      largest[r] = fmaxf(largest[r], __shfl_xor_sync(0xffffffffu, largest[r], 1));
      largest[r] = fmaxf(largest[r], __shfl_xor_sync(0xffffffffu, largest[r], 2));
      if (kFirst) {
        shift[r] = largest[r];
        sum[r] = 0.0f;
      } else {
        const float before = shift[r];
        shift[r] = fmaxf(before, largest[r]);
        factor[r] = exp2_approximate((before - finite_shift(r)) * p.scaleLog2);
        moved |= shift[r] != before;
        sum[r] *= factor[r];
      }
    }
  }

  /** Scores become weights in place; their sums join the rows' where those are not of rounded weights. */
  __device__ __forceinline__ void exponentiate(float (&scores)[kScores]) {
    const float shiftLog2[2] = {-finite_shift(0) * p.scaleLog2, -finite_shift(1) * p.scaleLog2};
#pragma unroll
    for (int i = 0; i < kScores; i++) {
      scores[i] = weight_of(scores[i], shiftLog2[i / 2 % 2]);
      if (!SUM_ROUNDED) sum[i / 2 % 2] += scores[i];
    }
  }

  /** Two weights of a row as ELEMENT; adds them to `total`. */
  __device__ __forceinline__ uint32 pack_weights(float first, float second, float& total) {
    const uint32 pair = pack_pair<ELEMENT>(first, second);
    const float2 rounded = SUM_ROUNDED ? unpack_pair<ELEMENT>(pair) : float2{first, second};
    total += rounded.x;
    total += rounded.y;
    return pair;
  }

  __device__ __forceinline__ void pack(const float (&scores)[kScores], uint32 (&weights)[kWeights]) {
    float ignored = 0.0f;
#pragma unroll
    for (int i = 0; i < kWeights; i++) {
      weights[i] = pack_weights(scores[2 * i], scores[2 * i + 1], SUM_ROUNDED ? sum[i % 2] : ignored);
    }
  }

  /** Weights by the maximum as it stands; false, and nothing else, where a row has outgrown it, or holds a NaN. */
  __device__ __forceinline__ bool try_shift(float (&scores)[kScores], uint32 (&weights)[kWeights]) {
    const float shiftLog2[2] = {-shift[0] * p.scaleLog2, -shift[1] * p.scaleLog2};
    float total[2] = {0.0f, 0.0f};
#pragma unroll
    for (int i = 0; i < kScores; i += 2) {
      scores[i] = weight_of(scores[i], shiftLog2[i / 2 % 2]);
      scores[i + 1] = weight_of(scores[i + 1], shiftLog2[i / 2 % 2]);
      weights[i / 2] = pack_weights(scores[i], scores[i + 1], total[i / 2 % 2]);
    }
    if (!__all_sync(0xffffffffu, total[0] < kOutgrown && total[1] < kOutgrown)) return false;
    sum[0] += total[0];
    sum[1] += total[1];
    return true;
  }

  __device__ __forceinline__ void rescale(float (&output)[kOutputs]) {
    if (!__any_sync(0xffffffffu, moved)) return;
#pragma unroll
    for (int i = 0; i < kOutputs; i++) output[i] *= factor[i / 2 % 2];
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

  /** The weights of one block, while those of the block behind it are summed up with their values. */
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
    // The outputs may have been rescaled behind a branch: without this fence products are serialised.
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

  /** Writes the log-sum-exps; `sum` becomes the factor of the outputs. */
  __device__ __forceinline__ void finish_rows(const Tile& tile, int firstRow) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
      sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 1);
      sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 2);
      const int query = firstRow + row() + 8 * r;
      if (lane % 4 == 0 && query < p.queries) {
        p.lse[static_cast<int64>(tile.headOfAll) * p.queries + query] =
            sum[r] == 0.0f ? -kInfinity : fmaf(shift[r], p.scale, __logf(sum[r]));
      }
      sum[r] = sum[r] == 0.0f ? 0.0f : 1.0f / sum[r];
    }
  }

  /** Writes the outputs by way of shared memory. */
  __device__ __forceinline__ void store_outputs(const float (&output)[kOutputs], const Tile& tile, int firstRow) {
    const int barrier = 1 + WARPGROUPS + warpgroup;
    if (thread == 0) wait_for_stores_to_read();
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
  }

  __device__ __forceinline__ void attend(const Tile& tile) {
    const int blocks = tile.blocks(p), firstRow = tile.row + warpgroup * 64;
    const int own = ceil_div(Tile::visible_keys(p, firstRow, 64), BLOCK_N);
    // Blocks below this one are seen by all of the queries.
    const int clear = (CAUSAL ? max(0, min(firstRow + 1 + p.keys - p.queries, p.keys)) : p.keys) / BLOCK_N;
    skip(blocks - own, own > 0 ? blocks - own : blocks - 1);

    float scores[kScores], output[kOutputs];
    uint32 weights[kWeights];
#pragma unroll
    for (int i = 0; i < kOutputs; i++) output[i] = 0.0f;
    sum[0] = sum[1] = 0.0f;
    if (own > 0) {
      load_queries();
      int block = own - 1;
      first_block(scores, weights, firstRow, block, block >= clear);
      for (block--; block >= clear; block--) next_block<true>(scores, weights, output, firstRow, block);
#pragma unroll 1
      for (; block >= 0; block--) next_block<false>(scores, weights, output, firstRow, block);
    }
    if (lane == 0) barrier_arrive(memory.query_emptied(warpgroup));
    if (own > 0) last_values(output, weights);
    finish_rows(tile, firstRow);
    store_outputs(output, tile, firstRow);
  }

  __device__ __forceinline__ void run() {
    if (kTurns && warpgroup == 0) threads_arrive(1, 256);
    for (unsigned parity = 0;; parity ^= 1) {
      barrier_wait(memory.query_filled(warpgroup), parity);
      int number;
      asm volatile("ld.shared.s32 %0, [%1];" : "=r"(number) : "r"(memory.tile_number(warpgroup)) : "memory");
      if (number < 0) break;
      attend(Tile(p, number));
    }
    if (thread == 0) wait_for_stores();
  }
};

/** By one thread, before any other touches the barriers. */
__device__ __forceinline__ void start_barriers(const SharedMemory& memory) {
  for (int i = 0; i < STAGES; i++) {
    barrier_init(memory.key_filled(i), 1);
    barrier_init(memory.key_emptied(i), 4 * WARPGROUPS);
    barrier_init(memory.value_filled(i), 1);
    barrier_init(memory.value_emptied(i), 4 * WARPGROUPS);
  }
  for (int i = 0; i < WARPGROUPS; i++) {
    barrier_init(memory.query_filled(i), 1);
    barrier_init(memory.query_emptied(i), 4);
  }
  publish_barriers();
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads, BLOCKS_PER_SM)
    flash_hopper_forward(const __grid_constant__ HopperForwardParams p) {
  extern __shared__ unsigned char shared[];
  const unsigned start = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  const SharedMemory memory{(start + 1023u) & ~1023u};
  if (threadIdx.x == 0) start_barriers(memory);
  __syncthreads();
  // The same for a whole warp, and known as such to the compiler.
  const int warpgroup = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
  if (warpgroup == WARPGROUPS) {
    give_up_registers<PRODUCER_REGISTERS>();
    if (threadIdx.x == kConsumers) Producer{p, memory}.run();
  } else {
    take_registers<CONSUMER_REGISTERS>();
    Consumer(p, memory, warpgroup).run();
  }
}
