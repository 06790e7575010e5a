// kernels/matmul/matmul_split_half.cu as a host compiler takes it: the same parameters, planes and scales, the same choice of
// a way for each K block, the same order of sums, element by element, and tensor cores by their arithmetic. The
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

double cut(double x, double quantum) { return trunc(x / quantum) * quantum; }

/** The unit of the last of `bits` significant bits of x. */
double last_bit(double x, int bits) { return x == 0 ? 1 : ldexp(1.0, ilogb(x) + 1 - bits); }

/** sum + Σ a·b over 16 of K. */
double multiply_step(double sum, const double* a, const double* b) {
  double largest = fabs(sum);
  for (int i = 0; i < kStep; i++) largest = fmax(largest, fabs(a[i] * b[i]));
  const double quantum = last_bit(largest, 26);
  double total = cut(sum, quantum);
  for (int i = 0; i < kStep; i++) total += cut(a[i] * b[i], quantum);
  return cut(total, last_bit(total, 24));
}

double multiply_block(double sum, const double* a, const double* b) {
  for (int k = 0; k < kBlock; k += kStep) sum = multiply_step(sum, a + k, b + k);
  return sum;
}

float promote(float total, float fresh, Way way, int shift, int factorA, int factorB) {
  constexpr int raised = 32;  // an exponent below a normal float's
  const int exponent = factorA + factorB - 2 * kExponentBias;
  if (way == Way::kByRow) return fmaf(fresh, power_of_two(exponent + raised) * power_of_two(shift - raised), total);
  if (way == Way::kExact) return fmaf(fresh, 0.0f, total);
  return fmaf(fresh * power_of_two(factorA - kExponentBias + shift), power_of_two(factorB - kExponentBias), total);
}

struct Element {
  const MatmulParams& p;
  int batch, row, column;
  float total = 0;

  int batch_a() const { return batch * p.batchStepA; }
  int batch_b() const { return batch * p.batchStepB; }
  int blocks_k() const { return ceil_div(p.k, kBlock); }

  /** Numbers of the 64×64 blocks that this row and this column have there. */
  int block_a(int block) const {
    const int blocks = ceil_div(p.m, kBlock), line = row / kBlock;
    return batch_a() * blocks * blocks_k() + (TRANS_A ? block * blocks + line : line * blocks_k() + block);
  }
  int block_b(int block) const {
    const int blocks = ceil_div(p.n, kBlock), line = column / kBlock;
    return batch_b() * blocks * blocks_k() + (TRANS_B ? line * blocks_k() + block : block * blocks + line);
  }
  Way way(int block) const { return way_of(p.summariesA[block_a(block)], p.summariesB[block_b(block)]); }

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
    const int factorA = p.factorsA[block_a(block) * kBlock + row % kBlock];
    const int factorB = p.factorsB[block_b(block) * kBlock + column % kBlock];
    total = promote(total, cross, way(block), kLoShift, factorA, factorB);
    total = promote(total, main, way(block), 0, factorA, factorB);
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
      if (way(block) == Way::kExact) add_exactly(block);
    }
    float& c = p.c[batch * p.batchStrideC + static_cast<long long>(row) * p.pitchC + column];
    c = total * p.alpha;
  }
};

}  // namespace

extern "C" __global__ void matmul_split_half(const __grid_constant__ MatmulParams params) {
  const int threads = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < params.batch * params.m * params.n; i += threads) {
    Element{params, i / (params.m * params.n), i / params.n % params.m, i % params.n}.write();
  }
}
