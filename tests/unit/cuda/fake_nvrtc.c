/* An NVRTC for compile_test that does what the environment says. FAKE_NAME, by its build, names the variable that
 * describes it: "13000 75 80 90", its version and architectures; if it isn't set, it fails. With FAKE_LACKS it has no
 * entry for cubins. It may ask for a second library, as real ones do: FAKE_NVRTC_BUILTINS is its name. */
#include "cuda/abi.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#pragma GCC visibility push(default)

struct _nvrtcProgram { char text[256], log[32 * 1024]; };

/* FAKE_NVRTC_FAIL=nvrtcCompileProgram:6 */
static nvrtcResult answer(const char *name) {
  const char *fails = getenv("FAKE_NVRTC_FAIL");
  size_t length = strlen(name);
  return fails && strncmp(fails, name, length) == 0 && fails[length] == ':' ? (nvrtcResult)atoi(fails + length + 1)
                                                                            : NVRTC_SUCCESS;
}

/* The k-th number; -1: there is none. */
static int number(int k) {
  const char *text = getenv(FAKE_NAME);
  char *end;
  for (; text && *text; text = end, --k) {
    long value = strtol(text, &end, 10);
    if (end == text) break;
    if (k == 0) return (int)value;
  }
  return -1;
}

/* The functions that real ones declare. Declared here, as no header of theirs is used. */
#define DECLARE(type, name, parameters) type name parameters;
GKI_NVRTC_ENTRIES(DECLARE)

const char *nvrtcGetErrorString(nvrtcResult result) { return result == NVRTC_SUCCESS ? "no error" : "an NVRTC error"; }
nvrtcResult nvrtcVersion(int *major, int *minor) {
  *major = number(0) / 1000;
  *minor = number(0) % 1000 / 10;
  return number(0) < 0 ? (nvrtcResult)11 : answer("nvrtcVersion");
}
nvrtcResult nvrtcGetNumSupportedArchs(int *count) {
  for (*count = 0; number(1 + *count) > 0;) ++*count;
  return answer("nvrtcGetNumSupportedArchs");
}
nvrtcResult nvrtcGetSupportedArchs(int *architectures) {
  for (int k = 0; number(1 + k) > 0; ++k) architectures[k] = number(1 + k);
  return answer("nvrtcGetSupportedArchs");
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *source, const char *name, int header_count,
                               const char *const *headers, const char *const *names) {
  (void)source, (void)headers, (void)names;
  if (header_count != 0) return NVRTC_ERROR_INVALID_OPTION;
  if (answer("nvrtcCreateProgram") != NVRTC_SUCCESS) return answer("nvrtcCreateProgram");
  *program = calloc(1, sizeof **program);
  if (!*program) return NVRTC_ERROR_OUT_OF_MEMORY;
  const char *log = getenv("FAKE_NVRTC_LOG");
  snprintf((*program)->log, sizeof (*program)->log, "%s%s", log ? name : "", log ? log : "");
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program) {
  free(*program);
  *program = NULL;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char *const *options) {
  const char *builtins = getenv("FAKE_NVRTC_BUILTINS");
  if (builtins && !dlopen(builtins, RTLD_NOW)) {
    snprintf(program->log, sizeof program->log, "failed to open %s", builtins);
    return (nvrtcResult)7;
  }
  for (int k = 0; k < count; ++k) {
    size_t used = strlen(program->text);
    snprintf(program->text + used, sizeof program->text - used, " %s", options[k]);
  }
  return answer("nvrtcCompileProgram");
}

#define GET(what, member) \
  nvrtcResult nvrtcGet##what##Size(nvrtcProgram program, size_t *bytes) { \
    *bytes = strlen(program->member) + 1; \
    return answer("nvrtcGet" #what "Size"); \
  } \
  nvrtcResult nvrtcGet##what(nvrtcProgram program, char *bytes) { \
    memcpy(bytes, program->member, strlen(program->member) + 1); \
    return answer("nvrtcGet" #what); \
  }
GET(PTX, text)
#ifndef FAKE_LACKS
GET(CUBIN, text)
#endif
GET(ProgramLog, log)
