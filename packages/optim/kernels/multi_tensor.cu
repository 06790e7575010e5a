// Element-wise updates over many float32 tensors in one launch.
//
// A launch gets a table of up to maxTensors tensors by value (KernelParams of up to 4 KB need no upload, so
// gradients may move from step to step for free). Each tensor is cut into chunks of CHUNK elements; block b
// works on one chunk of the tensor whose blocks start at firstBlock[t] <= b. See src/multi-tensor/multi-tensor.ts.
//
//   adamw              lists: parameter, first moment, second moment, gradient       28 bytes an element (30)
//   adamw_corrections  lists: number of steps (float64, one element)
//   sgd                lists: parameter, gradient                                    12 (14)
//   sgd_momentum       lists: parameter, momentum buffer, gradient                   20 (22)
//   squared_norms      lists: gradient; one partial sum a block                       4
//   finish_norm        the square root of the sum of all partial sums
//   clip               lists: gradient; scaled only where the norm exceeds the limit  8 or 0
//   clip_factor        what clip scales by, 1 where the norm is within the limit
//   unscale            lists: gradient; *foundInf becomes 1 if one is infinite or NaN 8
//   update_scale       the loss scale and the count of good steps behind a step
//   write_coefficients the numbers that several calls of an update read
//
// grid (chunks of all tensors, 1, 1), block (THREADS, 1, 1); finish_norm: grid (1, 1, 1), block (1024, 1, 1);
// update_scale, clip_factor, write_coefficients: one thread. `skip` may be null; where it is not and *skip is not 0, an update changes
// nothing. `coefficients` may be null; where it is not, it has the numbers that stand before the pointers, in their order.
// `factor` may be null; where it is not, gradients are multiplied by it first.
// All are bound by memory. Tensors whose data are not 16-byte aligned, and last chunks, go element by element.
//
// Where COPY is defined, as float16 or bfloat16, adamw, sgd and sgd_momentum also write the updated parameters in that
// type: their tables have one list more, of the copies, with null for a tensor that has none.

#include "prelude.cuh"

#define THREADS 256
// Vectors of four elements that a thread loads from each list before it uses the first.
// Of 1, 2 and 4, with 128 to 1024 threads, this pair came within 3 % of a plain copy on an H200.
#define IN_FLIGHT 4
#define CHUNK (THREADS * 4 * IN_FLIGHT)

namespace {

#ifdef COPY
constexpr int copies = 1;
#else
constexpr int copies = 0;
#define COPY bfloat16
#endif

// As many as the parameters of a launch have room for.
template <int lists>
constexpr int maxTensors = lists < 5 ? 88 : 76;

// Padded as the host pads it.
template <int lists>
struct alignas(128) TensorTable {
  float* data[lists][maxTensors<lists>];
  long long sizes[maxTensors<lists>];
  // Of unused entries: the largest int.
  int firstBlock[maxTensors<lists>];
};

template <int lists>
struct Chunk {
  float* data[lists];
  // Of the first list; null where there is none.
  COPY* copy;
  int tensor;
  int size;
  bool whole;
};

template <int lists, int copies = 0>
__device__ Chunk<lists> chunkOfBlock(const TensorTable<lists + copies>& table) {
  const int block = blockIdx.x;
  int tensor = 0;
#pragma unroll
  for (int step = 64; step > 0; step /= 2) {
    const int next = tensor + step;
    if (next < maxTensors<lists + copies> && table.firstBlock[next] <= block) tensor = next;
  }
  const long long start = (long long)(block - table.firstBlock[tensor]) * CHUNK;
  const long long rest = table.sizes[tensor] - start;
  Chunk<lists> chunk;
  chunk.tensor = tensor;
  unsigned long long addresses = 0;
#pragma unroll
  for (int list = 0; list < lists; list++) {
    chunk.data[list] = table.data[list][tensor] + start;
    addresses |= (unsigned long long)chunk.data[list];
  }
  chunk.copy = nullptr;
  if constexpr (copies > 0) {
    COPY* const copy = (COPY*)table.data[lists][tensor];
    if (copy != nullptr) chunk.copy = copy + start;
    addresses |= (unsigned long long)chunk.copy;
  }
  chunk.size = rest < CHUNK ? (int)rest : CHUNK;
  chunk.whole = rest >= CHUNK && addresses % 16 == 0;
  return chunk;
}

// Calls update(values) for each element, where values[list] is that element of each list, and writes the first
// `written` lists back, and the first of all to its copy. Data pass through once, so the caches are told not to keep them.
template <int lists, int written, typename Update>
__device__ void updateChunk(const Chunk<lists>& chunk, Update update) {
  if (!chunk.whole) {
    for (int i = threadIdx.x; i < chunk.size; i += THREADS) {
      float values[lists];
#pragma unroll
      for (int list = 0; list < lists; list++) values[list] = chunk.data[list][i];
      update(values);
#pragma unroll
      for (int list = 0; list < written; list++) chunk.data[list][i] = values[list];
      if (chunk.copy != nullptr) chunk.copy[i] = convert<COPY>(values[0]);
    }
    return;
  }
  float4 loaded[IN_FLIGHT][lists];
#pragma unroll
  for (int k = 0; k < IN_FLIGHT; k++) {
#pragma unroll
    for (int list = 0; list < lists; list++) {
      loaded[k][list] = __ldcs((const float4*)chunk.data[list] + k * THREADS + threadIdx.x);
    }
  }
#pragma unroll
  for (int k = 0; k < IN_FLIGHT; k++) {
#pragma unroll
    for (int component = 0; component < 4; component++) {
      float values[lists];
#pragma unroll
      for (int list = 0; list < lists; list++) values[list] = (&loaded[k][list].x)[component];
      update(values);
#pragma unroll
      for (int list = 0; list < written; list++) (&loaded[k][list].x)[component] = values[list];
    }
#pragma unroll
    for (int list = 0; list < written; list++) {
      __stcs((float4*)chunk.data[list] + k * THREADS + threadIdx.x, loaded[k][list]);
    }
    if (chunk.copy != nullptr) {
      const float4 first = loaded[k][0];
      const uint2 packed = {pack_pair<COPY>(first.x, first.y), pack_pair<COPY>(first.z, first.w)};
      __stcs((uint2*)chunk.copy + k * THREADS + threadIdx.x, packed);
    }
  }
}

__device__ float sumOverBlock(float value) {
  __shared__ float warpSums[32];
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(~0u, value, distance);
  if (threadIdx.x % 32 == 0) warpSums[threadIdx.x / 32] = value;
  __syncthreads();
  value = threadIdx.x < blockDim.x / 32 ? warpSums[threadIdx.x] : 0;
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(~0u, value, distance);
  return value;
}

// NaN where the norm is.
__device__ float clipFactor(float norm, float maxNorm) {
  const float scale = maxNorm / (norm + 1e-6f);
  return scale >= 1 ? 1 : scale;
}

__device__ float factorAt(const float* factor) { return factor != nullptr ? *factor : 1; }

// Rounded, as it would be in memory: nothing is added to it in the same operation.
__device__ float scaled(float gradient, float factor) { return __fmul_rn(gradient, factor); }

__device__ bool isSkipped(const float* skip) { return skip != nullptr && *skip != 0; }

}  // namespace

// Loshchilov & Hutter 2019, algorithm 2. The coefficients are explained in src/optimizers/adamw-update.ts. Where
// `corrections` is not null, the last two of tensor t are corrections[2t] and corrections[2t + 1].
extern "C" __global__ void __launch_bounds__(THREADS) adamw(
    const __grid_constant__ TensorTable<4 + copies> table, float decay, float oneMinusBeta1, float beta2, float oneMinusBeta2,
    float scaledEpsilon, float scaledStepSize, const float* corrections, const float* skip, const float* coefficients,
    const float* factor) {
  if (isSkipped(skip)) return;
  if (coefficients != nullptr) {
    decay = coefficients[0];
    oneMinusBeta1 = coefficients[1];
    beta2 = coefficients[2];
    oneMinusBeta2 = coefficients[3];
    scaledEpsilon = coefficients[4];
    scaledStepSize = coefficients[5];
  }
  const Chunk<4> chunk = chunkOfBlock<4, copies>(table);
  if (corrections != nullptr) {
    scaledEpsilon = corrections[2 * chunk.tensor];
    scaledStepSize = corrections[2 * chunk.tensor + 1];
  }
  const float beta1 = 1 - oneMinusBeta1;
  const float scale = factorAt(factor);
  updateChunk<4, 3>(chunk, [=](float (&values)[4]) {
    const float gradient = scaled(values[3], scale);
    // Which products are rounded is said here: left to the compiler, the kernel that writes copies may round others.
    const float m = fmaf(oneMinusBeta1, gradient, __fmul_rn(beta1, values[1]));
    const float v = fmaf(oneMinusBeta2 * gradient, gradient, __fmul_rn(beta2, values[2]));
    values[0] = fmaf(-scaledStepSize, m / (sqrtf(v) + scaledEpsilon), __fmul_rn(values[0], decay));
    values[1] = m;
    values[2] = v;
  });
}

// Counts a step of each tensor, unless it is skipped, and gives what of adamw's coefficients depends on that count.
extern "C" __global__ void __launch_bounds__(THREADS)
    adamw_corrections(const __grid_constant__ TensorTable<1> table, float* corrections, const float* skip,
                      double learningRate, double beta1, double beta2, double epsilon) {
  if (threadIdx.x != 0 || isSkipped(skip)) return;
  const Chunk<1> chunk = chunkOfBlock<1>(table);
  double* steps = (double*)chunk.data[0];
  const double step = *steps + 1;
  *steps = step;
  const double root = sqrt(1 - pow(beta2, step));
  corrections[2 * chunk.tensor] = (float)(root * epsilon);
  corrections[2 * chunk.tensor + 1] = (float)(root * (learningRate / (1 - pow(beta1, step))));
}

extern "C" __global__ void __launch_bounds__(THREADS)
    sgd(const __grid_constant__ TensorTable<2 + copies> table, float learningRate, float weightDecay, const float* skip,
        const float* coefficients, const float* factor) {
  if (isSkipped(skip)) return;
  if (coefficients != nullptr) {
    learningRate = coefficients[0];
    weightDecay = coefficients[1];
  }
  const float scale = factorAt(factor);
  updateChunk<2, 1>(chunkOfBlock<2, copies>(table), [=](float (&values)[2]) {
    values[0] -= learningRate * (scaled(values[1], scale) + weightDecay * values[0]);
  });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    sgd_momentum(const __grid_constant__ TensorTable<3 + copies> table, float learningRate, float weightDecay, float momentum,
                 float nesterov, const float* skip, const float* coefficients, const float* factor) {
  if (isSkipped(skip)) return;
  if (coefficients != nullptr) {
    learningRate = coefficients[0];
    weightDecay = coefficients[1];
    momentum = coefficients[2];
    nesterov = coefficients[3];
  }
  const float scale = factorAt(factor);
  updateChunk<3, 2>(chunkOfBlock<3, copies>(table), [=](float (&values)[3]) {
    const float gradient = scaled(values[2], scale) + weightDecay * values[0];
    values[1] = momentum * values[1] + gradient;
    values[0] -= learningRate * (nesterov != 0 ? gradient + momentum * values[1] : values[1]);
  });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    squared_norms(const __grid_constant__ TensorTable<1> table, float* partialSums) {
  float sum = 0;
  updateChunk<1, 0>(chunkOfBlock<1>(table), [&](float (&values)[1]) { sum += values[0] * values[0]; });
  sum = sumOverBlock(sum);
  if (threadIdx.x == 0) partialSums[blockIdx.x] = sum;
}

// In float64: the partial sums may be millions.
extern "C" __global__ void __launch_bounds__(1024) finish_norm(const float* partialSums, int count, float* norm) {
  __shared__ double sums[1024];
  double sum = 0;
  for (int i = threadIdx.x; i < count; i += 1024) sum += partialSums[i];
  sums[threadIdx.x] = sum;
  for (int half = 512; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) *norm = (float)sqrt(sums[0]);
}

extern "C" __global__ void clip_factor(const float* norm, float maxNorm, float* factor) {
  *factor = clipFactor(*norm, maxNorm);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    clip(const __grid_constant__ TensorTable<1> table, const float* norm, float maxNorm) {
  const float scale = clipFactor(*norm, maxNorm);
  if (scale == 1) return;
  updateChunk<1, 1>(chunkOfBlock<1>(table), [=](float (&values)[1]) { values[0] *= scale; });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    unscale(const __grid_constant__ TensorTable<1> table, float* foundInf, const float* scale) {
  const float inverseScale = (float)(1.0 / *scale);
  bool finite = true;
  updateChunk<1, 1>(chunkOfBlock<1>(table), [&](float (&values)[1]) {
    values[0] *= inverseScale;
    finite &= fabsf(values[0]) <= 3.402823466e38f;
  });
  // All that write here write the same.
  if (!finite) *foundInf = 1;
}

extern "C" __global__ void update_scale(float* scale, long long* growthTracker, const float* foundInf,
                                        double growthFactor, double backoffFactor, long long growthInterval) {
  if (*foundInf != 0) {
    *scale = (float)(*scale * backoffFactor);
    *growthTracker = 0;
  } else if (++*growthTracker == growthInterval) {
    const float grown = (float)(*scale * growthFactor);
    if (grown <= 3.402823466e38f) *scale = grown;
    *growthTracker = 0;
  }
}

extern "C" __global__ void write_coefficients(float* coefficients, float c0, float c1, float c2, float c3, float c4,
                                              float c5) {
  const float values[] = {c0, c1, c2, c3, c4, c5};
  for (int i = 0; i < 6; i++) coefficients[i] = values[i];
}
