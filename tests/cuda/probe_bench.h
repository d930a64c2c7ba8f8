/* For tests of the probe: a simulated driver of any version, entries of which a test may change, and its clock. */
#ifndef PROBE_BENCH_H
#define PROBE_BENCH_H
#include "cuda/gates.h"
#include "cuda/probe.h"
#include "base/error.h"
#include "simgpu/simgpu.h"
#include "unit/support/set_clock.h"
#include <dlfcn.h>
#include "unit/support/test.h"

static const simgpu *sim;
static gki_cuGetProcAddress_v2 get_entry;
static gki_cuda_driver driver, right; /* a test may change entries of the first one */
static CUcontext context;
static CUmodule gates;
static gki_cuda_caps got;

/* The simulated driver takes the kernels' code from this program. */
static const char image[] = ".version 8.4\n.target sm_52\n.address_size 64\n"
                            ".visible .entry gki_set_list()\n{\nret;\n}\n"
                            ".visible .entry gki_set_beside()\n{\nret;\n}\n";

#define RIGHT(call) assert_int_equal(call, CUDA_SUCCESS)

static inline void load_entry(const char *name, int version, int since, void *into) {
  void *entry = NULL;
  CUdriverProcAddressQueryResult status;
  if (since <= driver.version) {
    RIGHT(get_entry(name, &entry, version, 0, &status));
    assert_non_null(entry);
  }
  memcpy(into, &entry, sizeof entry);
}

static inline void load_driver(int version) {
  sim->set_version(version);
  driver.version = version;
#define LOAD(name, asked, since, parameters) load_entry(#name, asked, since, &driver.name);
  GKI_CUDA_ENTRIES(LOAD)
#undef LOAD
  right = driver;
}

static inline int begin_all(UNUSED void **state) {
  void *library = dlopen("build/simgpu/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) fail_msg("%s", dlerror());
  sim = dlsym(library, "simgpu_control");
  *(void **)(void *)&get_entry = dlsym(library, "cuGetProcAddress_v2");
  load_driver(13000);
  RIGHT(driver.cuInit(0));
  return 0;
}

static inline void open_context(void) {
  RIGHT(driver.cuDevicePrimaryCtxRetain(&context, 0));
  RIGHT(driver.cuCtxPushCurrent(context));
  RIGHT(driver.cuModuleLoadDataEx(&gates, image, 0, NULL, NULL));
}

/* After a failure of the device some of these calls fail. */
static inline void close_context(void) {
  (void)driver.cuModuleUnload(gates);
  (void)driver.cuCtxPopCurrent(&context);
  (void)driver.cuDevicePrimaryCtxRelease(0);
}

/* A clock that counts the questions asked: each is answered when the device has done all that it can. */
enum { STEP_MS = 10, PATIENCE_MS = 3000, NS_PER_MS = 1000000 };

static inline int begin(UNUSED void **state) {
  load_driver(13000);
  sim->answer_no(NULL);
  sim->allow(NULL);
  sim->set_seed(1);
  sim->set_passes(1000);
  sim->busy(0);
  sim->settle(1);
  sim->mark();
  reading_ns = (uint64_t)STEP_MS * NS_PER_MS;
  open_context();
  return 0;
}

static inline int end(UNUSED void **state) {
  close_context();
  if (sim->broken()) fail_msg("broken rule: %s", sim->first_broken());
  assert_int_equal(sim->alive(SIMGPU_ALL), 0);
  return 0;
}

static inline void ask(void) { gki_cuda_probe_again(&driver, context, gates, NULL, &got); }
static inline gk_result probe(CUdevice device) { return gki_cuda_probe(&driver, device, context, gates, NULL, &got); }

static inline gk_result probe_with(const char *wish, CUdevice device) {
  setenv("GK_CUDA_PROBE", wish, 1);
  const gk_result result = probe(device);
  unsetenv("GK_CUDA_PROBE");
  return result;
}

static inline const char *described(uint32_t quirks) {
  static char text[GKI_CUDA_QUIRKS_BYTES + 1];
  gki_cuda_describe_quirks(&got, quirks, text, sizeof text);
  return text;
}

enum { ALL_WAYS = 0x1fff };

/* "P1e P4e~ P8?": the questions answered with no, not shown (~), and, if there are conditional nodes, not asked (?). */
static inline const char *not_yes(void) {
  static const char *const marks[] = {"?", "", "-", "~"};
  static char text[400];
  size_t length = 0;
  text[0] = 0;
  for (int k = 0; k < GKI_CUDA_QUESTION_COUNT; ++k)
    if (got.answers[k] != GKI_CUDA_YES && (got.conditional || got.answers[k] != GKI_CUDA_NOT_ASKED))
      length += (size_t)snprintf(text + length, sizeof text - length, "%s%s%s", length ? " " : "",
                                 gki_cuda_questions[k].name, marks[got.answers[k]]);
  return text;
}

/* Asks: exactly these questions aren't answered with yes, and these quirks follow. */
static inline void expect(const char *questions, uint32_t quirks) {
  ask();
  if (strcmp(not_yes(), questions) != 0 || got.quirks != quirks)
    fail_msg("\"%s\", not \"%s\"; quirks %#x, not %#x; %s", not_yes(), questions, got.quirks, quirks, got.why);
}
#endif
