// A libcupti for tests: every `fakeLaunch` becomes a call and a kernel. As CUPTI does, it asks for buffers on each thread
// that launches, and tells of full ones from a thread of its own.
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

typedef void (*request_fn)(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void (*complete_fn)(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);

enum { DRIVER = 4, KERNEL = 10, KERNEL_BYTES = 224, CALL_BYTES = 40, NO_MORE_RECORDS = 12, LAUNCH_KERNEL = 307, ZEROED_BUFFERS = 5 };

static request_fn request;
static complete_fn complete;
// The buffer that a thread writes to.
struct filling {
  uint8_t *bytes;
  size_t size, used;
  struct filling *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct filling *all;
static __thread struct filling *own;
static size_t limit = SIZE_MAX;
static uint32_t correlation;
static int kernels_enabled, launches_enabled, stale, refused_kind;
// Kernels that were queued while they were recorded, and have not run.
static int queued;

static void hand_over(struct filling *filling) {
  if (filling->bytes) complete(NULL, 0, filling->bytes, filling->size, filling->used);
  filling->bytes = NULL;
  filling->used = 0;
}

static void *hand_over_one(void *filling) {
  hand_over(filling);
  return NULL;
}

static void *hand_over_all(void *unused) {
  for (struct filling *each = all; each; each = each->next) hand_over(each);
  return unused;
}

static int on_another_thread(void *(*function)(void *), void *argument) {
  pthread_t thread;
  pthread_create(&thread, NULL, function, argument);
  return pthread_join(thread, NULL);
}

static uint8_t *append(size_t bytes) {
  if (!own) {
    own = calloc(1, sizeof *own);
    pthread_mutex_lock(&mutex);
    own->next = all;
    all = own;
    pthread_mutex_unlock(&mutex);
  }
  // CUPTI takes full ones from its own thread; here the one that launches waits for that.
  if (own->bytes && own->used + bytes > limit) on_another_thread(hand_over_one, own);
  size_t max_records;
  if (!own->bytes) request(&own->bytes, &own->size, &max_records);
  uint8_t *record = own->bytes + own->used;
  // Buffers must come zeroed: what is left of an earlier recording would show.
  for (size_t i = 0; i < bytes; i++) stale |= record[i];
  own->used += bytes;
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
  if (kind == refused_kind) return 1;
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

// A launch whose kernel runs later, and the end of all such kernels.
void fakeQueue(void) { queued += kernels_enabled; }
void fakeRunQueued(void) {
  for (; queued > 0; queued--) {
    const int enabled = kernels_enabled;
    kernels_enabled = 1;
    fakeLaunch(1, 1);
    kernels_enabled = enabled;
  }
}

// No recording of this kind can begin from now on, or for -1 be flushed; 0 for none.
void fakeRefusal(int kind) { refused_kind = kind; }
int fakeEnabled(void) { return kernels_enabled || launches_enabled; }

// A launch by another thread, which this one waits for, as for those that NCCL has launch.
static void *launch_one(void *unused) {
  fakeLaunch(1, 1);
  return unused;
}
int fakeLaunchElsewhere(void) { return on_another_thread(launch_one, NULL); }

// Buffers are full with so many bytes from now on; 0 for what they hold.
void fakeBufferLimit(size_t bytes) { limit = bytes ? bytes : SIZE_MAX; }

int cuptiActivityFlushAll(uint32_t flags) {
  (void)flags;
  return on_another_thread(hand_over_all, NULL) || refused_kind == -1;
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
