// A libnvidia-ml for tests, of a GPU with clocks and another beside it. WITHOUT_VIOLATIONS, WITHOUT_P2P and WITH_OLD_NAME leave
// functions out as old drivers do.
#include <cstdint>
#include <cstring>

static const char gpu[] = "0000:18:00.0", other[] = "0000:2a:00.0";
static uint64_t reasons, held[2];
// What each question about the GPU gives: NVML_SUCCESS, or as NVML_ERROR_NOT_SUPPORTED 3 or NVML_ERROR_GPU_IS_LOST 15.
static int answer_reasons, answer_violations, answer_start;
// nvmlGpuP2PStatus_t by nvmlGpuP2PCapsIndex_t.
static int p2p_status[5];

struct violation_time { uint64_t reference, violation; };

extern "C" {
void fakeClocks(uint64_t now, uint64_t power_ns, uint64_t thermal_ns) {
  reasons = now;
  held[0] = power_ns;
  held[1] = thermal_ns;
}
void fakeAnswers(int of_reasons, int of_violations) {
  answer_reasons = of_reasons;
  answer_violations = of_violations;
}
void fakeStart(int answer) { answer_start = answer; }
void fakeP2p(int capability, int status) { p2p_status[capability] = status; }

int nvmlInit_v2(void) { return answer_start; }
int nvmlSystemGetNVMLVersion(char *version, unsigned length) {
  strncpy(version, "13.580.95", length);
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char *id, const void **device) {
  if (strcmp(id, gpu) != 0 && strcmp(id, other) != 0) return 6;
  *device = strcmp(id, gpu) == 0 ? gpu : other;
  return 0;
}
#ifndef WITHOUT_P2P
int nvmlDeviceGetP2PStatus(const void *device, const void *to, int capability, int *status) {
  if (device != gpu || to != other) return 2;
  *status = p2p_status[capability];
  return 0;
}
#endif
#ifdef WITH_OLD_NAME
int nvmlDeviceGetCurrentClocksThrottleReasons(const void *device, uint64_t *now) {
#else
int nvmlDeviceGetCurrentClocksEventReasons(const void *device, uint64_t *now) {
#endif
  if (device != gpu) return 2;
  if (answer_reasons == 0) *now = reasons;
  return answer_reasons;
}
#ifndef WITHOUT_VIOLATIONS
int nvmlDeviceGetViolationStatus(const void *device, int policy, violation_time *times) {
  if (device != gpu || policy > 1) return 2;
  if (answer_violations == 0) *times = {1, held[policy]};
  return answer_violations;
}
#endif
}
