// Correctness and speed of the split-half float32 product, before (old/) and after (new/), beside cuBLAS's SGEMM.
//   bench check          errors, element by element, against float64
//   bench time           OLD and NEW interleaved at the shapes of the training steps
//   bench marked         what blocks that leave the fast way cost
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "variants.cuh"

#define CHECK(call)                                                                                     \
  do {                                                                                                  \
    cudaError_t status_ = (call);                                                                       \
    if (status_ != cudaSuccess) {                                                                       \
      std::printf("%s:%d %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status_));            \
      std::exit(1);                                                                                     \
    }                                                                                                   \
  } while (0)

using EncodeTiled = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                                 const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                                 CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
static EncodeTiled encode_tiled() {
  static EncodeTiled function = [] {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found));
    return reinterpret_cast<EncodeTiled>(entry);
  }();
  return function;
}

// ---- cuBLAS, if it is there ------------------------------------------------------------------------------------

struct Cublas {
  using Create = int (*)(void**);
  using Sgemm = int (*)(void*, int, int, int, int, int, const float*, const float*, int, const float*, int, const float*,
                        float*, int);
  void* handle = nullptr;
  Sgemm sgemm = nullptr;
  Cublas() {
    const char* names[] = {getenv("CUBLAS"), "libcublas.so.13", "libcublas.so.12", "libcublas.so"};
    for (const char* name : names) {
      void* library = name && *name ? dlopen(name, RTLD_NOW) : nullptr;
      if (!library) continue;
      auto create = reinterpret_cast<Create>(dlsym(library, "cublasCreate_v2"));
      sgemm = reinterpret_cast<Sgemm>(dlsym(library, "cublasSgemm_v2"));
      if (create && sgemm && create(&handle) == 0) return;
      sgemm = nullptr;
    }
    std::printf("cuBLAS was not found: set CUBLAS to the path of libcublas.so\n");
  }
};

// ---- plan: mirrors matmul-split-half-plan.ts -----------------------------------------------------------------

struct TileShape {
  int blockM, blockN, stages;
  double blockKUs, contentionUs;
};
static const TileShape tiles[] = {
    {128, 128, 3, 1.0, 0.25}, {128, 64, 4, 0.56, 0.24}, {64, 128, 4, 0.6, 0.32}, {64, 64, 6, 0.38, 0.16}};

struct Plan {
  int tile = 0, grid = 0, threads = 0, sharedBytes = 0, streamTiles = 0;
  double us = 1e30;
};

static int ceil_div_host(long long a, long long b) { return int((a + b - 1) / b); }

static Plan plan_product(int m, int n, int k, int smCount) {
  const int blocksK = ceil_div_host(k, 64);
  Plan best;
  for (int t = 0; t < 4; t++) {
    const TileShape& tile = tiles[t];
    const int tilesM = ceil_div_host(m, tile.blockM), count = tilesM * ceil_div_host(n, tile.blockN);
    std::vector<int> candidates{0};
    const int lastWave = count % smCount;
    if (lastWave != 0) {
      if (count < smCount) candidates.push_back(count);
      else candidates.insert(candidates.end(), {lastWave, lastWave + smCount});
    }
    for (int streamTiles : candidates) {
      const int units = streamTiles == count ? count * blocksK : count;
      const int grid = std::min(smCount, units);
      const int shared = ceil_div_host((long long)streamTiles * blocksK, grid);
      const int whole = ceil_div_host(count - streamTiles, grid) * blocksK;
      const double blockKUs = tile.blockKUs + tile.contentionUs * (double(grid) / smCount);
      const double area = tile.blockM * tile.blockN / 16384.0;
      const double partial = shared > 0 ? (2.5 + 1.5 * ceil_div_host(blocksK, shared)) * (0.3 + 0.7 * area) : 0;
      const double rows = std::min(streamTiles, tilesM) * tile.blockM + ceil_div_host(streamTiles, tilesM) * tile.blockN;
      const double miss = streamTiles ? 1 + 0.5 * std::max(0.0, 1 - 40e6 / (rows * blocksK * 64 * 4)) : 1;
      const double us = 5.5 + (whole + shared * miss) * blockKUs + partial;
      if (us < best.us) {
        best = {t, grid, 128 * (tile.blockM / 64 + 1), tile.stages * 256 * (tile.blockM + tile.blockN) + 16 * tile.stages + 1024,
                streamTiles, us};
      }
    }
  }
  return best;
}

// ---- one product -----------------------------------------------------------------------------------------------

struct Operand {
  const float* source;
  int rows, columns, pitch, linesAreColumns;
};

template <typename T>
static void put(unsigned char* bytes, int offset, T value) { std::memcpy(bytes + offset, &value, sizeof(T)); }

/** OLD or NEW, with buffers of its own. */
struct Product {
  bool isNew;
  int m, n, k, ta, tb;
  Operand a, b;
  float* c;
  Plan plan;
  int blocksA, blocksB;
  unsigned short *planesA, *planesB;
  unsigned char *scalesA, *scalesB;
  float* partials = nullptr;
  int* ready = nullptr;
  alignas(64) unsigned char split[112] = {};
  alignas(64) unsigned char params[448] = {};
  std::vector<void*> owned;

  template <typename T>
  T* allocate(size_t bytes) {
    void* memory;
    CHECK(cudaMalloc(&memory, std::max<size_t>(bytes, 256)));
    CHECK(cudaMemset(memory, 0, std::max<size_t>(bytes, 256)));
    owned.push_back(memory);
    return static_cast<T*>(memory);
  }

  Product(bool isNew, int m, int n, int k, int ta, int tb, const float* x, const float* y, float* c, int smCount,
          int accumulate = 0, float alpha = 1)
      : isNew(isNew), m(m), n(n), k(k), ta(ta), tb(tb), c(c) {
    a = {x, ta ? k : m, ta ? m : k, ta ? m : k, ta};
    b = {y, tb ? n : k, tb ? k : n, tb ? k : n, !tb};
    plan = plan_product(m, n, k, smCount);
    layout(a, 0, planesA, scalesA, blocksA);
    layout(b, 1, planesB, scalesB, blocksB);
    const TileShape& tile = tiles[plan.tile];
    if (plan.streamTiles) {
      partials = allocate<float>(size_t(plan.grid) * tile.blockM * tile.blockN * 4);
      ready = allocate<int>(plan.grid * tile.blockM / 64 * 4);
    }
    put(params, 256, scalesA), put(params, 264, scalesB), put(params, 272, c), put(params, 280, partials);
    put(params, 288, ready), put(params, 296, 0ll);
    const int words[] = {m, n, k, 1, n, 0, 0, accumulate};
    for (int i = 0; i < 8; i++) put(params, 304 + 4 * i, words[i]);
    put(params, 336, alpha), put(params, 340, plan.streamTiles), put(params, 344, 8);
    put(params, 352, a.source), put(params, 360, b.source), put(params, 384, a.pitch), put(params, 388, b.pitch);
    CHECK(cudaFuncSetAttribute(kernel(), cudaFuncAttributeMaxDynamicSharedMemorySize, plan.sharedBytes));
  }
  ~Product() { for (void* memory : owned) cudaFree(memory); }

  const void* kernel() const { return product_kernel(isNew, plan.tile, ta, tb); }

  void layout(const Operand& o, int index, unsigned short*& planes, unsigned char*& scales, int& blocks) {
    const int pitch = ceil_div_host(o.columns, 8) * 8;
    blocks = ceil_div_host(o.rows, 64) * ceil_div_host(o.columns, 64);
    planes = allocate<unsigned short>(size_t(2) * o.rows * pitch * 2);
    scales = allocate<unsigned char>(size_t(blocks) * (isNew ? 68 : 4));
    unsigned char* at = split + 56 * index;
    put(at, 0, o.source), put(at, 8, planes), put(at, 16, scales), put(at, 24, 0ll);
    const int words[] = {o.rows, o.columns, o.pitch, pitch, blocks, o.linesAreColumns};
    for (int i = 0; i < 6; i++) put(at, 32 + 4 * i, words[i]);
    const cuuint64_t plane = cuuint64_t(o.rows) * pitch * 2;
    const cuuint64_t dims[] = {cuuint64_t(o.columns), cuuint64_t(o.rows), 2, 1}, strides[] = {cuuint64_t(pitch) * 2, plane, 2 * plane};
    const cuuint32_t box[] = {64, 64, 1, 1}, steps[] = {1, 1, 1, 1};
    CUtensorMap map;
    const CUresult status = encode_tiled()(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, planes, dims, strides, box, steps,
                                           CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                           CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (status != CUDA_SUCCESS) std::printf("cuTensorMapEncodeTiled: %d\n", status), std::exit(1);
    std::memcpy(params + 128 * index, &map, 128);
  }

  void run_split() {
    void* arguments[] = {split};
    const void* function = isNew ? reinterpret_cast<const void*>(new_split::split_half)
                                 : reinterpret_cast<const void*>(old_split::split_half);
    CHECK(cudaLaunchKernel(function, dim3(blocksA + blocksB), dim3(256), arguments, 0, 0));
  }
  void run_product() {
    cudaLaunchAttribute overlap{};
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(plan.grid), config.blockDim = dim3(plan.threads);
    config.dynamicSmemBytes = plan.sharedBytes, config.attrs = &overlap, config.numAttrs = 1;
    void* arguments[] = {params};
    CHECK(cudaLaunchKernelExC(&config, kernel(), arguments));
  }
  void run() { run_split(), run_product(); }
};

// ---- check -----------------------------------------------------------------------------------------------------

__global__ void reference(const float* a, const float* b, double* exact, double* magnitude, int m, int n, int k, int ta,
                          int tb) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
  if (j >= n) return;
  double sum = 0, absolute = 0;
  for (int l = 0; l < k; l++) {
    const double x = ta ? a[size_t(l) * m + i] : a[size_t(i) * k + l], y = tb ? b[size_t(j) * k + l] : b[size_t(l) * n + j];
    sum += x * y;
    absolute += fabs(x * y);
  }
  exact[size_t(i) * n + j] = sum;
  magnitude[size_t(i) * n + j] = absolute;
}

struct Errors {
  double worst = 0;   // max |err|/(|A||B|) in units of 2^-24
  double mean = 0;    // root mean square of the same
  long wrong = 0;     // Inf, NaN or overflow that do not agree
};

static Errors compare(const std::vector<float>& got, const std::vector<double>& exact, const std::vector<double>& magnitude,
                      int k) {
  Errors errors;
  double squares = 0;
  for (size_t i = 0; i < got.size(); i++) {
    const double x = exact[i];
    if (std::isnan(x) || std::isinf(x) || std::fabs(x) >= 3.4028235677973366e38) {
      const bool same = std::isnan(x) ? std::isnan(got[i]) : std::isinf(got[i]) && (got[i] > 0) == (x > 0);
      errors.wrong += !same;
      continue;
    }
    if (!std::isfinite(got[i])) {
      if (magnitude[i] < FLT_MAX) errors.wrong++;  // else an order of sums that overflows on the way
      continue;
    }
    const double error = std::max(0.0, std::fabs(got[i] - x) - (k + 2) * std::ldexp(1.0, -150));
    const double ratio = error == 0 ? 0 : error / magnitude[i] * 16777216.0;
    errors.worst = std::max(errors.worst, ratio);
    squares += ratio * ratio;
  }
  errors.mean = std::sqrt(squares / got.size());
  return errors;
}

using Fill = std::function<void(std::vector<float>&, std::vector<float>&, int m, int n, int k)>;  // A m×k, B k×n
static std::mt19937 engine(7);
static float normal() { static std::normal_distribution<float> d; return d(engine); }
static float uniform(float low, float high) { return std::uniform_real_distribution<float>(low, high)(engine); }

static std::vector<float> transposed(const std::vector<float>& x, int rows, int columns) {
  std::vector<float> y(x.size());
  for (int i = 0; i < rows; i++) for (int j = 0; j < columns; j++) y[size_t(j) * rows + i] = x[size_t(i) * columns + j];
  return y;
}

struct Case {
  const char* name;
  Fill change;  // of normal data
};

static std::vector<Case> all_cases() {
  auto on_a = [](auto f) { return [f](auto& a, auto&, int m, int, int k) { for (int i = 0; i < m; i++) for (int l = 0; l < k; l++) f(a[size_t(i) * k + l], i, l); }; };
  auto on_b = [](auto f) { return [f](auto&, auto& b, int, int n, int k) { for (int l = 0; l < k; l++) for (int j = 0; j < n; j++) f(b[size_t(l) * n + j], l, j); }; };
  auto both = [](auto f, auto g) { return [f, g](auto& a, auto& b, int m, int n, int k) { f(a, b, m, n, k), g(a, b, m, n, k); }; };
  return {
      {"normal", [](auto&, auto&, int, int, int) {}},
      {"uniform positive", both(on_a([](float& x, int, int) { x = uniform(0, 1); }), on_b([](float& x, int, int) { x = uniform(0, 1); }))},
      {"rows 1e+-10", on_a([](float& x, int i, int) { x *= std::pow(10.f, float(i % 21 - 10)); })},
      {"columns of B 1e+-10", on_b([](float& x, int, int j) { x *= std::pow(10.f, float(j % 21 - 10)); })},
      {"a row 2^-40 below", on_a([](float& x, int i, int) { if (i % 64 == 5) x *= 0x1p-40f; })},
      {"k 1e+-6 against inverse", both(on_a([](float& x, int, int l) { x *= std::pow(10.f, float(l % 13 - 6)); }), on_b([](float& x, int l, int) { x *= std::pow(10.f, float(6 - l % 13)); }))},
      {"elements 1e+-12, both", both(on_a([](float& x, int, int) { x *= std::pow(10.f, uniform(-12, 12)); }), on_b([](float& x, int, int) { x *= std::pow(10.f, uniform(-12, 12)); }))},
      {"wide softmax rows", on_a([](float& x, int, int) { x = std::exp(-40 * uniform(0, 1)); })},
      {"wide causal rows", on_a([](float& x, int i, int l) { x = l <= i ? std::exp(-40 * uniform(0, 1)) : 0; })},
      {"relu zeros", both(on_a([](float& x, int, int) { x = std::max(x, 0.f); }), on_b([](float& x, int, int) { x = std::max(x, 0.f); }))},
      {"denormals", on_a([](float& x, int, int) { x *= 1e-40f; })},
      {"denormals by 1e38", both(on_a([](float& x, int, int) { x *= 1e-40f; }), on_b([](float& x, int, int) { x *= 1e37f; }))},
      {"1e-20 by 1e18", both(on_a([](float& x, int, int) { x *= 1e-20f; }), on_b([](float& x, int, int) { x *= 1e18f; }))},
      {"1e30 by 1e-30", both(on_a([](float& x, int, int) { x *= 1e30f; }), on_b([](float& x, int, int) { x *= 1e-30f; }))},
      {"results denormal", both(on_a([](float& x, int, int) { x *= 1e-21f; }), on_b([](float& x, int, int) { x *= 1e-22f; }))},
      {"Inf", on_a([](float& x, int i, int l) { if (i % 50 == 3 && l == 9) x = i % 100 == 3 ? INFINITY : -INFINITY; })},
      {"NaN", on_b([](float& x, int l, int j) { if (j % 70 == 11 && l == 40) x = NAN; })},
      {"Inf by 0", both(on_a([](float& x, int i, int l) { if (i == 3 && l == 9) x = INFINITY; }), on_b([](float& x, int l, int) { if (l == 9) x = 0; }))},
      {"1e38 by 1e38", both(on_a([](float& x, int, int) { x = std::fabs(x) * 1e37f + 1e37f; }), on_b([](float& x, int, int) { x = std::fabs(x) * 1e37f + 1e37f; }))},
      {"zero rows", both(on_a([](float& x, int i, int) { if (i % 3) x = 0; }), on_b([](float& x, int, int j) { if (j % 5) x = 0; }))},
      {"all zero", on_a([](float& x, int, int) { x = 0; })},
  };
}

static float* upload(const std::vector<float>& x) {
  float* memory;
  CHECK(cudaMalloc(&memory, x.size() * 4));
  CHECK(cudaMemcpy(memory, x.data(), x.size() * 4, cudaMemcpyHostToDevice));
  return memory;
}

template <typename T>
static std::vector<T> download(const T* memory, size_t count) {
  std::vector<T> x(count);
  CHECK(cudaMemcpy(x.data(), memory, count * sizeof(T), cudaMemcpyDeviceToHost));
  return x;
}

static bool check(int smCount, Cublas& cublas) {
  const int shapes[][3] = {{512, 384, 768}, {333, 515, 777}, {1024, 640, 2560}, {1024, 2048, 64}, {5, 3, 70}, {65, 129, 1}};
  bool good = true;
  std::printf("max |err|/(|A||B|) in units of 2^-24 (rms in brackets), !N: N elements whose Inf/NaN/overflow is wrong\n");
  std::printf("bound on NEW: SGEMM's + 20, nothing wrong, the same bits twice\n");
  std::printf("%-26s %-14s %s %24s %24s %24s\n", "case", "m n k", "tr", "OLD", "NEW", "SGEMM");
  for (const auto& shape : shapes) {
    const int m = shape[0], n = shape[1], k = shape[2];
    for (const Case& one : all_cases()) {
      std::vector<float> a(size_t(m) * k), b(size_t(k) * n);
      for (float& x : a) x = normal();
      for (float& x : b) x = normal();
      one.change(a, b, m, n, k);
      for (int layout = 0; layout < 3; layout++) {
        const int ta = layout == 2, tb = layout == 1;
        float *x = upload(ta ? transposed(a, m, k) : a), *y = upload(tb ? transposed(b, k, n) : b), *c;
        double *exact, *magnitude;
        CHECK(cudaMalloc(&c, size_t(m) * n * 4));
        CHECK(cudaMalloc(&exact, size_t(m) * n * 8));
        CHECK(cudaMalloc(&magnitude, size_t(m) * n * 8));
        reference<<<dim3((n + 127) / 128, m), 128>>>(x, y, exact, magnitude, m, n, k, ta, tb);
        const auto truth = download(exact, size_t(m) * n), scale = download(magnitude, size_t(m) * n);
        Errors errors[3];
        bool same = true;
        for (int which = 0; which < 2; which++) {
          Product product(which, m, n, k, ta, tb, x, y, c, smCount);
          product.run();
          CHECK(cudaDeviceSynchronize());
          const auto first = download(c, size_t(m) * n);
          errors[which] = compare(first, truth, scale, k);
          product.run();
          const auto second = download(c, size_t(m) * n);
          if (which) same = std::memcmp(first.data(), second.data(), first.size() * 4) == 0;
        }
        if (cublas.sgemm) {
          const float alpha = 1, beta = 0;
          cublas.sgemm(cublas.handle, tb, ta, n, m, k, &alpha, y, tb ? k : n, x, ta ? m : k, &beta, c, n);
          errors[2] = compare(download(c, size_t(m) * n), truth, scale, k);
        }
        const bool ok = same && errors[1].wrong == 0 && errors[1].worst <= errors[2].worst + 20;
        good &= ok;
        char sizes[32];
        std::snprintf(sizes, sizeof sizes, "%d %d %d", m, n, k);
        std::printf("%-26s %-14s %d%d", one.name, sizes, ta, tb);
        for (const Errors& e : errors) std::printf("  %10.3g (%8.2g) !%-6ld", e.worst, e.mean, e.wrong);
        std::printf(" %s%s\n", ok ? "ok" : "BAD", same ? "" : " bits differ");
        for (void* memory : {(void*)x, (void*)y, (void*)c, (void*)exact, (void*)magnitude}) cudaFree(memory);
      }
    }
  }
  std::printf(good ? "ALL GOOD\n" : "SOME BAD\n");
  return good;
}

// ---- time ------------------------------------------------------------------------------------------------------

static float measure_us(const std::function<void()>& work, int repeats) {
  static cudaEvent_t start, end;
  if (!start) cudaEventCreate(&start), cudaEventCreate(&end);
  cudaEventRecord(start);
  for (int i = 0; i < repeats; i++) work();
  cudaEventRecord(end);
  CHECK(cudaEventSynchronize(end));
  float ms;
  cudaEventElapsedTime(&ms, start, end);
  return ms * 1e3f / repeats;
}

static float median(std::vector<float> x) {
  std::sort(x.begin(), x.end());
  return (x[(x.size() - 1) / 2] + x[x.size() / 2]) / 2;
}

struct Times {
  float split[2], product[2], all[2];
};

static Times time_both(Product& before, Product& after) {
  Product* products[] = {&before, &after};
  std::vector<float> samples[3][2];
  for (int round = 0; round < 23; round++) {
    for (int which = 0; which < 2; which++) {
      Product& p = *products[round % 2 ? 1 - which : which];
      const int index = p.isNew;
      const float split = measure_us([&] { p.run_split(); }, 4), product = measure_us([&] { p.run_product(); }, 4),
                  all = measure_us([&] { p.run(); }, 4);
      if (round < 3) continue;
      samples[0][index].push_back(split), samples[1][index].push_back(product), samples[2][index].push_back(all);
    }
  }
  Times times;
  for (int i = 0; i < 2; i++) {
    times.split[i] = median(samples[0][i]), times.product[i] = median(samples[1][i]), times.all[i] = median(samples[2][i]);
  }
  return times;
}

static float* random_floats(size_t count, const std::function<float(size_t)>& value) {
  std::vector<float> x(count);
  for (size_t i = 0; i < count; i++) x[i] = value(i);
  return upload(x);
}

static void time_steps(int smCount) {
  const struct { const char* name; int d, ff, layers; } sizes[] = {{"small", 768, 3072, 12}, {"medium", 1024, 4096, 24}, {"xl", 1600, 6400, 48}, {"2.7b", 2560, 10240, 32}};
  const size_t largest = size_t(10240) * 10240;
  std::vector<float> host(largest);
  for (float& x : host) x = normal();
  float *x = upload(host), *c;
  float* y = upload(host);
  CHECK(cudaMalloc(&c, largest * 4));
  std::printf("us, medians of 20 rounds of 4 launches, OLD and NEW in turn; TFLOP/s of split and product together\n");
  std::printf("%-7s %-9s %-6s %-18s %7s %7s %6s  %8s %8s %6s  %8s %8s %6s  %6s %6s\n", "size", "weight", "pass", "m n k", "split", "new",
              "ratio", "product", "new", "ratio", "both", "new", "ratio", "TFLOPs", "new");
  for (const auto& size : sizes) {
    // name, out, in, how many of them in a layer (the vocabulary: once a model)
    const struct { const char* name; int out, in, count; } weights[] = {
        {"attention", size.d, size.d, 4 * size.layers}, {"up", size.ff, size.d, 2 * size.layers}, {"down", size.d, size.ff, size.layers}, {"vocab", 10000, size.d, 1}};
    double total[2] = {0, 0};
    for (const auto& w : weights) {
      const struct { const char* name; int m, n, k, ta, tb; } passes[] = {
          {"y", 1024, w.out, w.in, 0, 1}, {"dx", 1024, w.in, w.out, 0, 0}, {"dw", w.out, w.in, 1024, 1, 0}};
      for (const auto& p : passes) {
        Product before(false, p.m, p.n, p.k, p.ta, p.tb, x, y, c, smCount), after(true, p.m, p.n, p.k, p.ta, p.tb, x, y, c, smCount);
        const Times t = time_both(before, after);
        const double flops = 2.0 * p.m * p.n * p.k;
        char shape[32];
        std::snprintf(shape, sizeof shape, "%d %d %d", p.m, p.n, p.k);
        std::printf("%-7s %-9s %-6s %-18s %7.1f %7.1f %6.3f  %8.1f %8.1f %6.3f  %8.1f %8.1f %6.3f  %6.0f %6.0f\n", size.name, w.name,
                    p.name, shape, t.split[0], t.split[1], t.split[1] / t.split[0], t.product[0], t.product[1],
                    t.product[1] / t.product[0], t.all[0], t.all[1], t.all[1] / t.all[0], flops / t.all[0] / 1e6, flops / t.all[1] / 1e6);
        for (int i = 0; i < 2; i++) total[i] += w.count * double(t.all[i]);
      }
    }
    std::printf("%-7s all weights' products of a step: OLD %.2f ms, NEW %.2f ms, ratio %.4f\n", size.name, total[0] / 1e3, total[1] / 1e3,
                total[1] / total[0]);
  }
}

// What the slower ways cost, of one product: every block by line; one block in 64 exact; every block exact.
static void time_marked(int smCount) {
  const int m = 1024, n = 6400, k = 1600;
  float* c;
  CHECK(cudaMalloc(&c, size_t(m) * n * 4));
  auto wide = [](float x) { return x * std::exp(-60 * uniform(0, 1)); };
  struct Kind {
    const char* name;
    std::function<float(size_t)> a, b;
  };
  const Kind kinds[] = {
      {"normal", [](size_t) { return normal(); }, [](size_t) { return normal(); }},
      {"A by line (rows over 1e+-10)", [&](size_t i) { return normal() * std::pow(10.f, float(i / k % 21) - 10); }, [](size_t) { return normal(); }},
      {"A wide, B dense", [&](size_t) { return wide(normal()); }, [](size_t) { return uniform(1, 2); }},
      {"A wide, B normal", [&](size_t) { return wide(normal()); }, [](size_t) { return normal(); }},
      {"A has one NaN", [&](size_t i) { return i == 12345 ? NAN : normal(); }, [](size_t) { return normal(); }},
      {"A and B wide: all exact", [&](size_t) { return wide(normal()); }, [&](size_t) { return wide(normal()); }},
  };
  for (int layout = 0; layout < 3; layout++) {
    const int ta = layout == 2, tb = layout == 1;
    for (const Kind& kind : kinds) {
      float *x = random_floats(size_t(m) * k, kind.a), *y = random_floats(size_t(k) * n, kind.b);
      Product before(false, m, n, k, ta, tb, x, y, c, smCount), after(true, m, n, k, ta, tb, x, y, c, smCount);
      before.run(), after.run();
      const Times t = time_both(before, after);
      std::printf("%d%d %-30s product: OLD %7.1f us, NEW %7.1f us, ratio %.3f\n", ta, tb, kind.name, t.product[0], t.product[1],
                  t.product[1] / t.product[0]);
      cudaFree(x), cudaFree(y);
    }
  }
  cudaFree(c);
}

int main(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "check";
  cudaDeviceProp properties;
  CHECK(cudaGetDeviceProperties(&properties, 0));
  std::printf("%s, %d multiprocessors\n", properties.name, properties.multiProcessorCount);
  if (what == "time") return time_steps(properties.multiProcessorCount), 0;
  if (what == "marked") return time_marked(properties.multiProcessorCount), 0;
  Cublas cublas;
  return check(properties.multiProcessorCount, cublas) ? 0 : 1;
}
