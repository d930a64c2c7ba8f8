/* Shared by the tests of the simulated GPU's parts: its NVRTC, and the driver's part in the execution of kernels. */
#ifndef SIMGPU_WORLD_H
#define SIMGPU_WORLD_H
#include "unit/support/test.h"
#include <dlfcn.h>
#include "cuda/abi.h"
#include "kernel.h"
#include "simnvrtc.h"

typedef struct nvrtc {
#define MEMBER(result, name, parameters) result(*name) parameters;
  GKI_NVRTC_ENTRIES(MEMBER)
#undef MEMBER
  const simnvrtc_control *control;
} nvrtc;
static nvrtc rtc;

static inline int load_nvrtc(__attribute__((unused)) void **state) {
  void *library = dlopen("build/simgpu/libnvrtc.so.12", RTLD_NOW | RTLD_LOCAL);
  if (!library) fail_msg("%s", dlerror());
#define FIND(result, name, parameters) \
  *(void **)(void *)&rtc.name = dlsym(library, #name); \
  assert_non_null(rtc.name);
  GKI_NVRTC_ENTRIES(FIND)
#undef FIND
  rtc.control = dlsym(library, "simnvrtc_control");
  assert_non_null(rtc.control);
  return 0;
}

#define RTC(call) assert_int_equal(rtc.call, NVRTC_SUCCESS)

static inline char *log_of(nvrtcProgram program) {
  size_t bytes = 0;
  RTC(nvrtcGetProgramLogSize(program, &bytes));
  char *log = malloc(bytes);
  RTC(nvrtcGetProgramLog(program, log));
  assert_int_equal(strlen(log) + 1, bytes);
  return log;
}

/* A cubin, or PTX for compute_; the test fails if it doesn't compile. By malloc. */
static inline char *compile_for(const char *source, const char *option, size_t *bytes) {
  nvrtcProgram program;
  RTC(nvrtcCreateProgram(&program, source, "test.cu", 0, NULL, NULL));
  nvrtcResult result = rtc.nvrtcCompileProgram(program, 1, &option);
  char *log = log_of(program), *image;
  if (result != NVRTC_SUCCESS) fail_msg("%s: %s", rtc.nvrtcGetErrorString(result), log);
  free(log);
  RTC(nvrtcGetCUBINSize(program, bytes));
  bool is_cubin = *bytes > 0;
  if (!is_cubin) RTC(nvrtcGetPTXSize(program, bytes));
  image = malloc(*bytes);
  assert_int_equal((is_cubin ? rtc.nvrtcGetCUBIN : rtc.nvrtcGetPTX)(program, image), NVRTC_SUCCESS);
  RTC(nvrtcDestroyProgram(&program));
  assert_null(program);
  return image;
}

static inline sim_module *load_image(const void *image, int driver, int arch) {
  sim_module *module;
  char log[512];
  CUresult result = sim_module_load(image, driver, arch, &module, log, sizeof log);
  if (result != CUDA_SUCCESS) fail_msg("%d: %s", (int)result, log);
  return module;
}

/* Until the end of a KERNEL_TEST, which finds no broken rule then. */
static sim_module *modules[4];
static size_t module_count;
static inline sim_module *load_source(const char *source) {
  size_t bytes;
  char *image = compile_for(source, "--gpu-architecture=sm_80", &bytes);
  sim_module *module = modules[module_count++] = load_image(image, 12080, 80);
  free(image);
  return module;
}

/* ---- the driver's part ------------------------------------------------------------------------------------------- */

static struct { unsigned long long handle, thread; unsigned value, count; } last_set;
void sim_set_conditional(unsigned long long handle, unsigned value) {
  last_set.handle = handle;
  last_set.value = value;
  last_set.thread = sim_kernel_thread();
  ++last_set.count;
}

/* Memory is the test's own. */
bool sim_touch(__attribute__((unused)) unsigned long long at, __attribute__((unused)) unsigned long long bytes) {
  return true;
}
void sim_give_up(void) { abort(); }

static char broken[1024]; /* "rule: text" of the last one */
__attribute__((format(printf, 2, 3)))
_Bool sim_broken(const char *rule, const char *text, ...);
_Bool sim_broken(const char *rule, const char *text, ...) {
  va_list arguments;
  int length = snprintf(broken, sizeof broken, "%s: ", rule);
  va_start(arguments, text);
  vsnprintf(broken + length, sizeof broken - (size_t)length, text, arguments);
  va_end(arguments);
  return true;
}

#define assert_broken(words) \
  do { \
    if (!strstr(broken, words)) fail_msg("\"%s\" doesn't say \"%s\"", broken, words); \
    broken[0] = 0; \
  } while (0)

static inline int end_kernels(__attribute__((unused)) void **state) {
  while (module_count > 0) sim_module_unload(modules[--module_count]);
  assert_string_equal(broken, "");
  return 0;
}
#define KERNEL_TEST(name) TEST_WITH(name, NULL, end_kernels)
#endif
