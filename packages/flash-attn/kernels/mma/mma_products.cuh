// Products of tiles (mma_tiles.cuh) on tensor cores (mma.cuh).
//
// float32 has two ways, by the macro PRODUCTS:
//   1   operands are rounded to TF32, 11 significant bits
//   3   each operand is split into hi, which is rounded to 11 significant bits, and lo, of which as many count:
//       a·b ≈ hi·hi + (hi·lo + lo·hi), which leaves out 2^-22 of it or less, with either sign; of scores, whose errors
//       an exponential multiplies, lo·lo is added, too (add_scores). Tensor cores cut what they add, so that hi·hi starts from zero every kPromotion steps, and is added to the sums by ordinary additions,
//       which round to nearest. The small products have sums of their own. Where an operand is infinite these are NaN, and
//       hi·hi alone, which is not finite either, is what IEEE 754 says. NaN itself may be lost in hi, never in lo: next
//       to finite numbers it stays NaN. What rounds up to 2^128, above 3.401·10^38, becomes infinite.
//
// The sums of a product lie in registers, for each 16 rows and 8 columns as C of mma.cuh. Where the right operand's rows
// run along k (RowsAlongK), float32 has the columns of two neighbouring tiles in another order, in which a lane reads
// and writes neighbours: see column_of.
#ifndef ROOFLINE_MMA_PRODUCTS_CUH
#define ROOFLINE_MMA_PRODUCTS_CUH

#include "mma_tiles.cuh"

namespace {

constexpr float kLog2E = 1.44269504088896340736f;
/** How far along k one instruction multiplies. */
constexpr int kStep = 2 * kVector;
/** Columns of two neighbouring tiles of sums. */
constexpr int kPair = 16;
constexpr int kPairs = HEAD_DIM / kPair;
static_assert(HEAD_DIM % kPair == 0, "the head dimension is rounded up");

/** The column, within a pair of tiles of sums, of sum i of tile j, after a product with RowsAlongK. */
__device__ __forceinline__ int column_of(int j, int i) {
  const int t = lane_index() % 4;
  return kIsFloat ? 4 * t + 2 * (i % 2) + j : 8 * j + 2 * t + i % 2;
}

/** e^x, of float32 scores less their largest one: where |x| is large, and 2^(x · log2 e) less exact, it is small. */
__device__ __forceinline__ float exponential(float x) { return fast_exp2(x * kLog2E); }

// Operands -------------------------------------------------------------------------------------------------

/** Words of an operand, as an instruction takes them. */
struct Fragment {
  uint32 hi[4];
  /** Of float32 by three products alone. */
  uint32 lo[PRODUCTS == 3 ? 4 : 1];

  /** Two 16-bit elements, or a float32. */
  __device__ __forceinline__ void set(int i, uint32 word) {
    if constexpr (!kIsFloat) {
      hi[i] = word;
    } else if constexpr (PRODUCTS == 1) {
      hi[i] = to_tf32(__uint_as_float(word));
    } else {
      hi[i] = (word + 0x1000u) & 0xffffe000u;
      lo[i] = __float_as_uint(__uint_as_float(word) - __uint_as_float(hi[i]));
    }
  }
  __device__ __forceinline__ void set(const uint32 (&words)[4]) {
#pragma unroll
    for (int i = 0; i < 4; i++) set(i, words[i]);
  }
};

// Each operand loads the words of a fragment: of 16 rows m, or of a pair of tiles of 8 columns, of which 2j and 2j + 1 are
// the words of tile j.

/** The left operand A, the rows of a tile: A[row][k]. */
struct LeftRows {
  static constexpr bool kIsInRegisters = false;
  const ELEMENT* tile;
  __device__ __forceinline__ void finish(Fragment& a, const uint32 (&words)[4], int, int) const { a.set(words); }
  __device__ __forceinline__ void load(uint32 (&words)[4], int m, int step) const {
    const int lane = lane_index();
    load_matrices(words, tile + (16 * m + lane % 16) * kPitch + step * kStep + lane / 16 * kVector);
  }
};

/** The left operand as fragments that stay in registers. */
template <int kRowTiles, int kSteps>
struct LeftHeld {
  static constexpr bool kIsInRegisters = true;
  Fragment fragments[kRowTiles][kSteps];

  template <typename Left>
  __device__ __forceinline__ void hold(const Left& left) {
#pragma unroll
    for (int m = 0; m < kRowTiles; m++) {
#pragma unroll
      for (int step = 0; step < kSteps; step++) {
        uint32 words[4];
        left.load(words, m, step);
        fragments[m][step].set(words);
      }
    }
  }
  __device__ __forceinline__ void load(uint32 (&)[4], int, int) const {}
  __device__ __forceinline__ void finish(Fragment& a, const uint32 (&)[4], int m, int step) const {
    a = fragments[m][step];
  }
};

/** The left operand as the sums of another product, whose columns run along k. */
template <int kRowTiles, int kTiles, typename T = ELEMENT>
struct LeftSums {
  static constexpr bool kIsInRegisters = true;
  __device__ __forceinline__ void finish(Fragment& a, const uint32 (&words)[4], int, int) const { a.set(words); }
  const float (&sums)[kRowTiles][kTiles][4];
  __device__ __forceinline__ void load(uint32 (&words)[4], int m, int step) const {
    if constexpr (sizeof(T) == sizeof(float)) {
      // k is taken as 0, 2, 4, 6, 1, 3, 5, 7, as RowsAlongK does.
      const float (&x)[4] = sums[m][step];
#pragma unroll
      for (int i = 0; i < 4; i++) words[i] = __float_as_uint(x[i % 2 * 2 + i / 2]);
    } else {
      const float (&x)[4] = sums[m][2 * step], (&y)[4] = sums[m][2 * step + 1];
      words[0] = pack_pair<T>(x[0], x[1]);
      words[1] = pack_pair<T>(x[2], x[3]);
      words[2] = pack_pair<T>(y[0], y[1]);
      words[3] = pack_pair<T>(y[2], y[3]);
    }
  }
};

/** The right operand B, the columns of which are the rows of a tile: B[k][n] is tile[n][k]. */
struct ColumnsAlongK {
  const ELEMENT* tile;
  __device__ __forceinline__ void load(uint32 (&words)[4], int pair, int step) const {
    const int lane = lane_index();
    const int row = pair * kPair + lane / 16 * 8 + lane % 8;
    load_matrices(words, tile + row * kPitch + step * kStep + lane / 8 % 2 * kVector);
  }
};

/** The right operand B as it lies in a tile: B[k][n] is tile[k][n]; pair number i is `first + i · every`. */
struct RowsAlongK {
  const ELEMENT* tile;
  int first = 0, every = 1;
  __device__ __forceinline__ void load(uint32 (&words)[4], int pair, int step) const {
    const int lane = lane_index(), column = (first + pair * every) * kPair;
    if constexpr (kIsFloat) {
      const ELEMENT* const row = tile + (step * kStep + 2 * (lane % 4)) * kPitch + column + 2 * (lane / 4);
      const Vector<uint32, 2> even = load_vector<2>(reinterpret_cast<const uint32*>(row));
      const Vector<uint32, 2> odd = load_vector<2>(reinterpret_cast<const uint32*>(row + kPitch));
#pragma unroll
      for (int i = 0; i < 4; i++) words[i] = (i % 2 ? odd : even)[i / 2];
    } else {
      load_matrices_transposed(words, tile + (step * kStep + lane % 16) * kPitch + column + lane / 16 * 8);
    }
  }
};

// Products -------------------------------------------------------------------------------------------------

/** In which order the two small products are added, so that A · B and its transpose, Bᵀ · Aᵀ, are equal to the bit. */
enum class Order { kLeftLast, kRightLast };

/** Steps after which sums of hi·hi join the others. */
constexpr int kPromotion = 2;

template <int kTile>
__device__ __forceinline__ void multiply_tile(float (&sums)[4], const uint32 (&a)[4], const uint32 (&b)[4]) {
  const uint32 words[2] = {b[2 * kTile], b[2 * kTile + 1]};
  multiply<ELEMENT>(sums, a, words);
}

template <int kTile>
__device__ __forceinline__ void multiply_tile_anew(float (&sums)[4], const uint32 (&a)[4], const uint32 (&b)[4]) {
  const uint32 words[2] = {b[2 * kTile], b[2 * kTile + 1]};
  multiply_anew<ELEMENT>(sums, a, words);
}

/** The sums of a product at work: what is done with the operands of each step. */
template <Order order, int kFirstPair, int kRowTiles, int kTiles>
struct Accumulation {
  float (&sums)[kRowTiles][kTiles][4];

  __device__ __forceinline__ void add(int, int m, int pair, const Fragment& a, const Fragment& b) {
    multiply_tile<0>(sums[m][2 * (kFirstPair + pair)], a.hi, b.hi);
    multiply_tile<1>(sums[m][2 * (kFirstPair + pair) + 1], a.hi, b.hi);
  }
  __device__ __forceinline__ void finish_step(int, bool) {}
};

#if PRODUCTS == 3

/** sum + last + small, where small, if it is NaN, does not count next to what is infinite. */
__device__ __forceinline__ float joined(float sum, float last, float small) {
  const float withoutSmall = sum + last;
  const bool counts = small == small || withoutSmall - withoutSmall == 0;
  return counts ? sum + (last + small) : withoutSmall;
}

/** Of float32 in three products, or in four with lo·lo, up to two pairs of tiles. */
template <Order order, bool kWithSmallest, int kFirstPair, int kPairCount, int kRowTiles, int kTiles>
struct SplitAccumulation {
  float (&sums)[kRowTiles][kTiles][4];
  float main[kRowTiles][2 * kPairCount][4], small[kRowTiles][2 * kPairCount][4] = {};

  /** An instruction waits for one on the same sums; others come between them. */
  __device__ __forceinline__ void add(int step, int m, int pair, const Fragment& a, const Fragment& b) {
    float(&small0)[4] = small[m][2 * pair], (&small1)[4] = small[m][2 * pair + 1];
    constexpr bool kLeftLast = order == Order::kLeftLast;
    if constexpr (kWithSmallest) {
      multiply_tile<0>(small0, a.lo, b.lo);
      multiply_tile<1>(small1, a.lo, b.lo);
    }
    multiply_tile<0>(small0, kLeftLast ? a.hi : a.lo, kLeftLast ? b.lo : b.hi);
    multiply_tile<1>(small1, kLeftLast ? a.hi : a.lo, kLeftLast ? b.lo : b.hi);
    if (step % kPromotion == 0) {
      multiply_tile_anew<0>(main[m][2 * pair], a.hi, b.hi);
      multiply_tile_anew<1>(main[m][2 * pair + 1], a.hi, b.hi);
    } else {
      multiply_tile<0>(main[m][2 * pair], a.hi, b.hi);
      multiply_tile<1>(main[m][2 * pair + 1], a.hi, b.hi);
    }
    multiply_tile<0>(small0, kLeftLast ? a.lo : a.hi, kLeftLast ? b.hi : b.lo);
    multiply_tile<1>(small1, kLeftLast ? a.lo : a.hi, kLeftLast ? b.hi : b.lo);
  }
  __device__ __forceinline__ void finish_step(int step, bool isLast) {
    if (step % kPromotion != kPromotion - 1 && !isLast) return;
#pragma unroll
    for (int m = 0; m < kRowTiles; m++) {
#pragma unroll
      for (int tile = 0; tile < 2 * kPairCount; tile++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
          float& sum = sums[m][2 * kFirstPair + tile][i];
          sum = isLast ? joined(sum, main[m][tile][i], small[m][tile][i]) : sum + main[m][tile][i];
        }
      }
    }
  }
};

#endif

/**
 * Walks through the pairs of tiles and the steps along k of a product. The operands of the next multiplications are on
 * their way while these are made.
 */
template <int kSteps, int kFirstPair, int kPairCount, int kRowTiles, typename Accumulate, typename Left, typename Right>
__device__ __forceinline__ void walk_product(Accumulate& accumulation, const Left& left, const Right& right) {
  uint32 wordsA[2][kRowTiles][4], wordsB[2][4];
  Fragment a[kRowTiles], b;
#pragma unroll
  for (int m = 0; m < kRowTiles; m++) left.load(wordsA[0][m], m, 0);
  right.load(wordsB[0], kFirstPair, 0);
  constexpr int kUnroll = Left::kIsInRegisters ? kSteps : 8;
#pragma unroll kUnroll
  for (int step = 0; step < kSteps; step++) {
#pragma unroll
    for (int m = 0; m < kRowTiles; m++) left.finish(a[m], wordsA[step % 2][m], m, step);
#pragma unroll
    for (int pair = 0; pair < kPairCount; pair++) {
      const int index = step * kPairCount + pair, next = index + 1;
      if (pair == 0 && step + 1 < kSteps) {
#pragma unroll
        for (int m = 0; m < kRowTiles; m++) left.load(wordsA[(step + 1) % 2][m], m, step + 1);
      }
      if (next < kSteps * kPairCount) right.load(wordsB[next % 2], kFirstPair + next % kPairCount, next / kPairCount);
      b.set(wordsB[index % 2]);
#pragma unroll
      for (int m = 0; m < kRowTiles; m++) accumulation.add(step, m, pair, a[m], b);
    }
    accumulation.finish_step(step, step == kSteps - 1);
  }
}

/** sums += A · B over kSteps · kStep of k, to the accuracy of ELEMENT, from pair kFirstPair on. */
template <int kSteps, Order order = Order::kLeftLast, bool kWithSmallest = false, int kFirstPair = 0, int kRowTiles,
          int kTiles, typename Left, typename Right>
__device__ __forceinline__ void add_product(float (&sums)[kRowTiles][kTiles][4], const Left& left, const Right& right) {
#if PRODUCTS == 3
  // Its own sums take registers: two pairs at a time.
  constexpr int kLeft = kTiles / 2 - kFirstPair, kPairCount = kLeft < 2 ? kLeft : 2;
  SplitAccumulation<order, kWithSmallest, kFirstPair, kPairCount, kRowTiles, kTiles> accumulation{sums, {}, {}};
#else
  constexpr int kPairCount = kTiles / 2 - kFirstPair;
  Accumulation<order, kFirstPair, kRowTiles, kTiles> accumulation{sums};
#endif
  walk_product<kSteps, kFirstPair, kPairCount, kRowTiles>(accumulation, left, right);
  if constexpr (2 * (kFirstPair + kPairCount) < kTiles) {
    add_product<kSteps, order, kWithSmallest, kFirstPair + kPairCount>(sums, left, right);
  }
}

/** Scores, of which the two passes must have the same: equal for A · B and Bᵀ · Aᵀ, if kSteps are. */
template <int kSteps, Order order, int kRowTiles, int kTiles, typename Left, typename Right>
__device__ __forceinline__ void add_scores(float (&scores)[kRowTiles][kTiles][4], const Left& left, const Right& right) {
  add_product<kSteps, order, true>(scores, left, right);
}

// Sums back to tiles ---------------------------------------------------------------------------------------

/** Writes factors · sums of 16 rows, which a product with RowsAlongK gave, to as many of a tile. */
template <int kTiles, typename T>
__device__ __forceinline__ void write_sums(T* tile, const float (&sums)[kTiles][4], const float (&factors)[2]) {
#pragma unroll
  for (int pair = 0; pair < kTiles / 2; pair++) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const float factor = factors[half];
      const float (&x)[4] = sums[2 * pair], (&y)[4] = sums[2 * pair + 1];
      T* const row = tile + (lane_index() / 4 + 8 * half) * kPitch + pair * kPair + column_of(0, 0);
      if constexpr (sizeof(T) == sizeof(float)) {
        const Vector<float, 4> four = {factor * x[2 * half], factor * y[2 * half], factor * x[2 * half + 1],
                                       factor * y[2 * half + 1]};
        store_vector(reinterpret_cast<float*>(row), four);
      } else {
        *reinterpret_cast<uint32*>(row) = pack_pair<T>(factor * x[2 * half], factor * x[2 * half + 1]);
        *reinterpret_cast<uint32*>(row + 8) = pack_pair<T>(factor * y[2 * half], factor * y[2 * half + 1]);
      }
    }
  }
}

/** Writes the sums of half of 16 rows, likewise, to one row of floats in memory. */
template <int kTiles>
__device__ __forceinline__ void write_partial(float* row, const float (&sums)[kTiles][4], int half) {
#pragma unroll
  for (int pair = 0; pair < kTiles / 2; pair++) {
    const float (&x)[4] = sums[2 * pair], (&y)[4] = sums[2 * pair + 1];
    float* const own = row + pair * kPair + column_of(0, 0);
    if (kIsFloat) {
      store_vector(own, Vector<float, 4>{x[2 * half], y[2 * half], x[2 * half + 1], y[2 * half + 1]});
    } else {
      store_vector(own, Vector<float, 2>{x[2 * half], x[2 * half + 1]});
      store_vector(own + 8, Vector<float, 2>{y[2 * half], y[2 * half + 1]});
    }
  }
}

}  // namespace

#endif
