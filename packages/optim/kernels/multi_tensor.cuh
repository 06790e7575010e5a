// Element-wise work on many float32 tensors in one launch: what its kernels have in common.
//
// A launch gets a table of up to maxTensors tensors by value (KernelParams of up to 4 KB need no upload, so
// gradients may move from step to step for free). Each tensor is cut into chunks of kChunk elements; block b
// works on one chunk of the tensor whose blocks start at firstBlock[t] <= b. See src/multi-tensor/multi-tensor.ts.
//
// grid (chunks of all tensors, 1, 1), block (kThreads, 1, 1)
// Bound by memory. Tensors whose data are not 16-byte aligned, and last chunks, go element by element.
//
// Where COPY is defined, as float16 or bfloat16, updates also write the first list's tensors in that type: their tables
// have one list more, of the copies, with null for a tensor that has none.
#ifndef ROOFLINE_OPTIM_MULTI_TENSOR_CUH
#define ROOFLINE_OPTIM_MULTI_TENSOR_CUH
#include "prelude.cuh"

namespace {

constexpr int kThreads = 256;
// Vectors of four elements that a thread loads from each list before it uses the first.
// Of 1, 2 and 4, with 128 to 1024 threads, this pair came within 3 % of a plain copy on an H200.
constexpr int kInFlight = 4;
constexpr int kChunk = kThreads * 4 * kInFlight;

#ifdef COPY
using Copy = COPY;
constexpr int kCopies = 1;
#else
using Copy = bfloat16;
constexpr int kCopies = 0;
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
  Copy* copy;
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
  const long long start = (long long)(block - table.firstBlock[tensor]) * kChunk;
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
    Copy* const copy = (Copy*)table.data[lists][tensor];
    if (copy != nullptr) chunk.copy = copy + start;
    addresses |= (unsigned long long)chunk.copy;
  }
  chunk.size = rest < kChunk ? (int)rest : kChunk;
  chunk.whole = rest >= kChunk && addresses % 16 == 0;
  return chunk;
}

// Calls update(values) for each element, where values[list] is that element of each list, and writes the first
// `written` lists back, and the first of all to its copy. Data pass through once, so they are streamed past the caches.
template <int lists, int written, typename Update>
__device__ void updateChunk(const Chunk<lists>& chunk, Update update) {
  if (!chunk.whole) {
    for (int i = threadIdx.x; i < chunk.size; i += kThreads) {
      float values[lists];
#pragma unroll
      for (int list = 0; list < lists; list++) values[list] = chunk.data[list][i];
      update(values);
#pragma unroll
      for (int list = 0; list < written; list++) chunk.data[list][i] = values[list];
      if (chunk.copy != nullptr) chunk.copy[i] = convert<Copy>(values[0]);
    }
    return;
  }
  float4 loaded[kInFlight][lists];
#pragma unroll
  for (int k = 0; k < kInFlight; k++) {
#pragma unroll
    for (int list = 0; list < lists; list++) {
      loaded[k][list] = __ldcs((const float4*)chunk.data[list] + k * kThreads + threadIdx.x);
    }
  }
#pragma unroll
  for (int k = 0; k < kInFlight; k++) {
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
      __stcs((float4*)chunk.data[list] + k * kThreads + threadIdx.x, loaded[k][list]);
    }
    if (chunk.copy != nullptr) {
      const float4 first = loaded[k][0];
      const uint2 packed = {pack_pair<Copy>(first.x, first.y), pack_pair<Copy>(first.z, first.w)};
      __stcs((uint2*)chunk.copy + k * kThreads + threadIdx.x, packed);
    }
  }
}

}  // namespace

#endif
