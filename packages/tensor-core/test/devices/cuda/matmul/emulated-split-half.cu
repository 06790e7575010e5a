// kernels/matmul_split_half.cu as a host compiler takes it: the same parameters, planes and scales, the same choice of
// a promotion for each K block, the same order of sums, element by element, and tensor cores by their arithmetic. The
// stand-in for a CUtensorMap holds {address, 4 dimensions, 3 strides in bytes}, 64 bits each.
//
// Tensor cores (Fasi et al. 2021, "Numerical behavior of NVIDIA tensor cores"): 16 exact products and the accumulator
// are aligned to the largest of them, cut there two bits below its 24th, and their sum is cut to 24 bits.

#include "float16.cuh"
#include "split_half.cuh"

namespace {

constexpr int kStep = 16;

int ceil_div(int a, int b) { return (a + b - 1) / b; }

/** An element of a plane; zero past the ends. */
double plane_at(const TensorMap& map, int column, int row, int plane, int batch) {
  const unsigned long long* field = map.opaque;
  if (column >= static_cast<int>(field[1]) || row >= static_cast<int>(field[2])) return 0;
  const unsigned long long address = field[0] + 2ull * column + field[5] * row + field[6] * plane + field[7] * batch;
  return to_float(*reinterpret_cast<const float16*>(address));
}

double cut(double x, double quantum) { return std::trunc(x / quantum) * quantum; }

/** The unit of the last of `bits` significant bits of x. */
double last_bit(double x, int bits) { return x == 0 ? 1 : std::ldexp(1.0, std::ilogb(x) + 1 - bits); }

/** sum + Σ a·b over 16 of K. */
double multiply_step(double sum, const double* a, const double* b) {
  double largest = std::fabs(sum);
  for (int i = 0; i < kStep; i++) largest = std::fmax(largest, std::fabs(a[i] * b[i]));
  const double quantum = last_bit(largest, 26);
  double total = cut(sum, quantum);
  for (int i = 0; i < kStep; i++) total += cut(a[i] * b[i], quantum);
  return cut(total, last_bit(total, 24));
}

double multiply_block(double sum, const double* a, const double* b) {
  for (int k = 0; k < kBlock; k += kStep) sum = multiply_step(sum, a + k, b + k);
  return sum;
}

float promote(float total, float fresh, int promotion, int shift, int factorA, int factorB) {
  if (promotion == kByLine) {
    return fmaf(fresh * power_of_two(factorA - kExponentBias + shift), power_of_two(factorB - kExponentBias), total);
  }
  const int exponent = promotion + shift < -252 ? -252 : promotion + shift;
  if (exponent >= -126 && exponent <= 127) return fmaf(fresh, power_of_two(exponent), total);
  return fmaf(fresh * power_of_two(exponent >> 1), power_of_two(exponent - (exponent >> 1)), total);
}

struct Element {
  const MatmulParams& p;
  int batch, row, column;
  float total = 0;

  int batch_a() const { return batch * p.batchStepA; }
  int batch_b() const { return batch * p.batchStepB; }
  int blocks_k() const { return ceil_div(p.k, kBlock); }

  const BlockScales& scales_a(int block) const {
    const int blocks = ceil_div(p.m, kBlock), line = row / kBlock;
    return p.scalesA[batch_a() * blocks * blocks_k() + (TRANS_A ? block * blocks + line : line * blocks_k() + block)];
  }
  const BlockScales& scales_b(int block) const {
    const int blocks = ceil_div(p.n, kBlock), line = column / kBlock;
    return p.scalesB[batch_b() * blocks * blocks_k() + (TRANS_B ? line * blocks_k() + block : block * blocks + line)];
  }
  int exponent_a(int block) const { return p.exponentsA[&scales_a(block) - p.scalesA]; }
  int exponent_b(int block) const { return p.exponentsB[&scales_b(block) - p.scalesB]; }
  int promotion(int block) const {
    const int exponent = exponent_a(block) + exponent_b(block);
    return is_plain_sum(exponent) ? exponent : promotion_of(scales_a(block).summary, scales_b(block).summary);
  }
  static int factor_of(const BlockScales& scales, int line) {
    return has_one_factor(scales.summary) ? scales.summary & 255u : scales.factors[line];
  }

  void multiply(int block) {
    double a[2][kBlock], b[2][kBlock];
    for (int plane = 0; plane < 2; plane++) {
      for (int i = 0; i < kBlock; i++) {
        const int k = block * kBlock + i;
        a[plane][i] = TRANS_A ? plane_at(p.a, row, k, plane, batch_a()) : plane_at(p.a, k, row, plane, batch_a());
        b[plane][i] = TRANS_B ? plane_at(p.b, k, column, plane, batch_b()) : plane_at(p.b, column, k, plane, batch_b());
      }
    }
    const double cross = multiply_block(multiply_block(0, a[0], b[1]), a[1], b[0]), main = multiply_block(0, a[0], b[0]);
    const int factorA = factor_of(scales_a(block), row % kBlock), factorB = factor_of(scales_b(block), column % kBlock);
    total = promote(total, cross, promotion(block), kLoShift, factorA, factorB);
    total = promote(total, main, promotion(block), 0, factorA, factorB);
  }

  void add_exactly(int block) {
    const float *a = p.sourceA + batch * p.batchStrideA, *b = p.sourceB + batch * p.batchStrideB;
    for (int k = block * kBlock; k < (block + 1) * kBlock && k < p.k; k++) {
      const float x = TRANS_A ? a[static_cast<long long>(k) * p.pitchA + row] : a[static_cast<long long>(row) * p.pitchA + k];
      const float y = TRANS_B ? b[static_cast<long long>(column) * p.pitchB + k] : b[static_cast<long long>(k) * p.pitchB + column];
      total = fmaf(x, y, total);
    }
  }

  void write() {
    for (int block = 0; block < blocks_k(); block++) multiply(block);
    for (int block = 0; block < blocks_k(); block++) {
      if (promotion(block) == kExactly) add_exactly(block);
    }
    float& c = p.c[batch * p.batchStrideC + static_cast<long long>(row) * p.pitchC + column];
    c = p.accumulate ? c + total * p.alpha : total * p.alpha;
  }
};

}  // namespace

extern "C" __global__ void matmul_split_half(const __grid_constant__ MatmulParams params) {
  const int threads = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < params.batch * params.m * params.n; i += threads) {
    Element{params, i / (params.m * params.n), i / params.n % params.m, i % params.n}.write();
  }
}
