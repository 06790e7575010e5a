// A libcupti for tests: every mark becomes one kernel, told of from a thread of its own as CUPTI does.
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef void (*request_fn)(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void (*complete_fn)(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);

enum { KERNEL = 10, EXTERNAL = 39, KERNEL_BYTES = 224, EXTERNAL_BYTES = 24, NO_MORE_RECORDS = 12 };

static request_fn request;
static complete_fn complete;
static uint8_t *buffer;
static size_t size, used, max_records;
static uint32_t correlation;
static int enabled;
static const uint64_t now = 1760000000000000000u;

static uint8_t *append(size_t bytes) {
  if (!buffer) request(&buffer, &size, &max_records);
  uint8_t *record = buffer + used;
  memset(record, 0, bytes);
  used += bytes;
  return record;
}

int cuptiGetTimestamp(uint64_t *time) { *time = now; return 0; }
int cuptiActivityEnable(int kind) { enabled |= kind == KERNEL; return 0; }
int cuptiActivityDisable(int kind) { if (kind == KERNEL) enabled = 0; return 0; }
int cuptiActivityPopExternalCorrelationId(int kind, uint64_t *last) { (void)kind; *last = 0; return 0; }
int cuptiGetResultString(int result, const char **text) { (void)result; *text = "fake"; return 0; }

int cuptiActivityRegisterCallbacks(request_fn r, complete_fn c) {
  request = r;
  complete = c;
  return 0;
}

int cuptiActivityPushExternalCorrelationId(int kind, uint64_t id) {
  (void)kind;
  if (!enabled) return 0;
  correlation++;
  uint8_t *external = append(EXTERNAL_BYTES);
  *(uint32_t *)external = EXTERNAL;
  *(uint64_t *)(external + 8) = id;
  *(uint32_t *)(external + 16) = correlation;
  uint8_t *kernel = append(KERNEL_BYTES);
  *(uint32_t *)kernel = KERNEL;
  *(uint64_t *)(kernel + 16) = now + 1000 * id;
  *(uint64_t *)(kernel + 24) = now + 1000 * id + 500;
  *(uint32_t *)(kernel + 92) = correlation;
  *(const char **)(kernel + 104) = "_Z5scaleIfEvPT_";
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
  if (*record) offset = (size_t)(*record - start) + (*(uint32_t *)*record == KERNEL ? KERNEL_BYTES : EXTERNAL_BYTES);
  if (offset >= valid) return NO_MORE_RECORDS;
  *record = start + offset;
  return 0;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped) {
  (void)context, (void)stream;
  *dropped = 3;
  return 0;
}
