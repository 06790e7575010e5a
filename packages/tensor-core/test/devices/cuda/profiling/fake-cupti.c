// A libcupti for tests: every `fakeLaunch` becomes a call and a kernel, told of from a thread of its own as CUPTI does.
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

typedef void (*request_fn)(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void (*complete_fn)(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);

enum { DRIVER = 4, KERNEL = 10, KERNEL_BYTES = 224, CALL_BYTES = 40, NO_MORE_RECORDS = 12, LAUNCH_KERNEL = 307, ZEROED_BUFFERS = 5 };

static request_fn request;
static complete_fn complete;
static uint8_t *buffer;
static size_t size, used, max_records;
static uint32_t correlation;
static int kernels_enabled, launches_enabled, stale;

static uint8_t *append(size_t bytes) {
  if (!buffer) request(&buffer, &size, &max_records);
  uint8_t *record = buffer + used;
  // Buffers must come zeroed: what is left of an earlier recording would show.
  for (size_t i = 0; i < bytes; i++) stale |= record[i];
  used += bytes;
  return record;
}

// The time of day, as CUPTI's own clock.
static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

int cuptiGetTimestamp(uint64_t *time) { *time = now(); return 0; }
int cuptiActivityEnable(int kind) {
  kernels_enabled |= kind == KERNEL;
  launches_enabled |= kind == DRIVER;
  return 0;
}
int cuptiActivityDisable(int kind) {
  if (kind == KERNEL) kernels_enabled = 0;
  if (kind == DRIVER) launches_enabled = 0;
  return 0;
}
int cuptiActivityEnableRuntimeApi(uint32_t call, uint8_t enable) { (void)call, (void)enable; return 0; }
int cuptiActivityEnableDriverApi(uint32_t call, uint8_t enable) { (void)call, (void)enable; return 0; }
int cuptiActivitySetAttribute(int attribute, size_t *bytes, void *value) {
  return attribute == ZEROED_BUFFERS && *bytes == 1 && *(uint8_t *)value == 1 ? 0 : 1;
}
int cuptiGetResultString(int result, const char **text) { (void)result; *text = "fake"; return 0; }

int cuptiActivityRegisterCallbacks(request_fn r, complete_fn c) {
  request = r;
  complete = c;
  return 0;
}

// A launch of about `micros` microseconds; its kernels, many for a graph, run for 500 ns each after it.
int fakeLaunch(uint32_t micros, uint32_t kernels) {
  const uint64_t start = now();
  uint64_t end;
  do end = now(); while (end < start + 1000u * micros);
  correlation++;
  if (launches_enabled) {
    uint8_t *call = append(CALL_BYTES);
    *(uint32_t *)call = DRIVER;
    *(uint32_t *)(call + 4) = LAUNCH_KERNEL;
    *(uint64_t *)(call + 8) = start;
    *(uint64_t *)(call + 16) = end;
    *(uint32_t *)(call + 32) = correlation;
  }
  // CUPTI hands them over in any order: last first.
  for (uint32_t i = kernels; kernels_enabled && i-- > 0;) {
    uint8_t *kernel = append(KERNEL_BYTES);
    *(uint32_t *)kernel = KERNEL;
    *(uint64_t *)(kernel + 16) = end + 500 * i;
    *(uint64_t *)(kernel + 24) = end + 500 * i + 500;
    *(uint32_t *)(kernel + 92) = correlation;
    *(const char **)(kernel + 104) = "_Z5scaleIfEvPT_";
  }
  return 0;
}

static void *hand_over(void *unused) {
  if (buffer) complete(NULL, 0, buffer, size, used);
  buffer = NULL;
  used = 0;
  return unused;
}

int cuptiActivityFlushAll(uint32_t flags) {
  (void)flags;
  pthread_t worker;
  pthread_create(&worker, NULL, hand_over, NULL);
  return pthread_join(worker, NULL);
}

int cuptiActivityGetNextRecord(uint8_t *start, size_t valid, uint8_t **record) {
  size_t offset = 0;
  if (*record) offset = (size_t)(*record - start) + (*(uint32_t *)*record == KERNEL ? KERNEL_BYTES : CALL_BYTES);
  if (offset >= valid) return NO_MORE_RECORDS;
  *record = start + offset;
  return 0;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped) {
  (void)context, (void)stream;
  *dropped = stale ? 1000 : 3;
  return 0;
}
