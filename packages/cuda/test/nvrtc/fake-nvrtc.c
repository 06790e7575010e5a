// Stands in for libnvrtc: the image of a program is the text of everything that it was given, one thing a line.
// It knows sm_80 and sm_90; a source that contains "broken" does not compile. One that is compiled makes the file that stands behind "touches ", if one does,
// and then takes the milliseconds that stand behind "sleeps ", if any do. The first compilation of a process handles signals that end
// it, and gives them back as NVRTC does, by a function that knows no flags.
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
  char *image;
  size_t size;
  int broken;
} Program;

// Of a thread: others may be compiling.
static _Thread_local int live = 0;

static void add(Program *program, const char *label, const char *text) {
  const size_t length = strlen(label) + strlen(text) + 2;
  program->image = realloc(program->image, program->size + length + 1);
  sprintf(program->image + program->size, "%s %s\n", label, text);
  program->size += length;
}

int nvrtcVersion(int *major, int *minor) {
  *major = 13;
  *minor = 7;
  return 0;
}

int nvrtcCreateProgram(Program **out, const char *source, const char *name, int count, const char **headers,
                       const char **names) {
  Program *program = calloc(1, sizeof(Program));
  add(program, "name", name);
  add(program, "source", source);
  for (int i = 0; i < count; i++) {
    add(program, "header", names[i]);
    add(program, "text", headers[i]);
  }
  program->broken = strstr(source, "broken") != 0;
  live++;
  *out = program;
  return 0;
}

static void touch(const char *source) {
  const char *place = strstr(source, "touches ");
  char path[1024];
  if (place && sscanf(place, "touches %1023s", path) == 1) fclose(fopen(path, "w"));
}

static void rest(const char *source) {
  const char *place = strstr(source, "sleeps ");
  if (place) usleep(1000 * atoi(place + strlen("sleeps ")));
}

static void handleSignals(void) {
  static atomic_flag done = ATOMIC_FLAG_INIT;
  if (atomic_flag_test_and_set(&done)) return;
  const int signals[] = {SIGINT, SIGTERM};
  for (int i = 0; i < 2; i++) signal(signals[i], signal(signals[i], SIG_IGN));
}

int nvrtcCompileProgram(Program *program, int count, const char **options) {
  handleSignals();
  touch(program->image);
  rest(program->image);
  for (int i = 0; i < count; i++) add(program, "option", options[i]);
  char number[16];
  sprintf(number, "%d", live);
  add(program, "live", number);
  if (count > 0 && strstr(options[0], "sm_150")) return 5;
  return program->broken ? 6 : 0;
}

int nvrtcGetNumSupportedArchs(int *count) {
  *count = 2;
  return 0;
}

int nvrtcGetSupportedArchs(int *architectures) {
  architectures[0] = 80;
  architectures[1] = 90;
  return 0;
}

int nvrtcGetCUBINSize(Program *program, size_t *size) {
  *size = program->size;
  return 0;
}

int nvrtcGetCUBIN(Program *program, char *image) {
  memcpy(image, program->image, program->size);
  return 0;
}

int nvrtcGetProgramLogSize(Program *program, size_t *size) {
  *size = 5;
  return 0;
}

int nvrtcGetProgramLog(Program *program, char *log) {
  memcpy(log, "why?", 5);
  return 0;
}

int nvrtcDestroyProgram(Program **program) {
  free((*program)->image);
  free(*program);
  live--;
  return 0;
}

const char *nvrtcGetErrorString(int result) { return result == 6 ? "NVRTC_ERROR_COMPILATION" : "OTHER"; }
