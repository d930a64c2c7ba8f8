/* For the tests of the simulated driver: it loaded with the stub of kernels, one context with a stream and a module. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H
#include "simgpu.h"
#include "stub.h"
#include "unit/support/test.h"
#include <dlfcn.h>
#include <pthread.h>

#ifndef SIM_LIBRARY
#define SIM_LIBRARY "build/simgpu/rules/libcuda.so.1"
#endif

typedef struct sim_driver {
#define MEMBER(name, version, since, parameters) CUresult(*name) parameters;
  GKI_CUDA_ENTRIES(MEMBER) SIMGPU_ENTRIES(MEMBER)
#undef MEMBER
} sim_driver;

static sim_driver cu;
static const simgpu *sim;
static gki_cuGetProcAddress_v2 get_entry;
static void (*set_conditional)(unsigned long long handle, unsigned value);
static void (*touch)(unsigned long long at, unsigned long long bytes);
static unsigned long long *stub_thread;

static CUcontext context;
static CUstream stream;
static CUmodule module;

/* A data pointer of dlsym as a function. */
#define ADDRESS_OF(function, name) \
  do { \
    void *found_ = (name); \
    memcpy(&(function), &found_, sizeof found_); \
  } while (0)

static inline void load(const char *name, int version, void *into) {
  void *entry = NULL;
  CUdriverProcAddressQueryResult status;
  assert_int_equal(get_entry(name, &entry, version, 0, &status), CUDA_SUCCESS);
  assert_non_null(entry);
  memcpy(into, &entry, sizeof entry);
}

/* Without cuInit. */
static inline int find_driver(void) {
  void *library = dlopen(SIM_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return -1;
  }
  sim = dlsym(library, "simgpu_control");
  stub_thread = dlsym(library, "sim_stub_thread");
  ADDRESS_OF(get_entry, dlsym(library, "cuGetProcAddress_v2"));
  ADDRESS_OF(set_conditional, dlsym(library, "sim_set_conditional"));
  ADDRESS_OF(touch, dlsym(library, "sim_stub_touch"));
  sim->set_version(13000);
#define LOAD(name, version, since, parameters) load(#name, version, &cu.name);
  GKI_CUDA_ENTRIES(LOAD) SIMGPU_ENTRIES(LOAD)
#undef LOAD
  return 0;
}

static inline int load_driver(UNUSED void **state) {
  return find_driver() == 0 && cu.cuInit(0) == CUDA_SUCCESS ? 0 : -1;
}

#define RIGHT(call) assert_int_equal(call, CUDA_SUCCESS)
#define WRONG(code, call) assert_int_equal(call, code)
/* The call answers the code; a rule was broken, or the reason for its refusal has those words. */
#define BREAKS(code, rule, call) \
  do { \
    WRONG(code, call); \
    expect_broken(rule); \
  } while (0)
#define REFUSED(code, words, call) \
  do { \
    WRONG(code, call); \
    expect_refused(words); \
  } while (0)

static inline void expect_broken(const char *rule) {
  const char *text = sim->first_broken();
  if (strncmp(text, rule, strlen(rule)) != 0 || text[strlen(rule)] != ':')
    fail_msg("broken: \"%s\", not %s", text, rule);
  sim->forgive();
}

static inline void expect_refused(const char *words) {
  if (!strstr(sim->refused(), words)) fail_msg("refused: \"%s\", without \"%s\"", sim->refused(), words);
}

static inline void load_module(const void *image) { RIGHT(cu.cuModuleLoadDataEx(&module, image, 0, NULL, NULL)); }

static inline int open_context(const void *image) {
  sim->set_version(13000);
  sim->answer_no(NULL);
  sim->allow(NULL);
  sim->forgive();
  sim->set_seed(1);
  sim->set_passes(1000);
  sim->mark();
  RIGHT(cu.cuDevicePrimaryCtxRetain(&context, 0));
  RIGHT(cu.cuCtxPushCurrent(context));
  RIGHT(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  load_module(image);
  return 0;
}

/* By then a test has given back everything that it made. */
static inline int close_context(UNUSED void **state) {
  cu.cuModuleUnload(module);
  cu.cuStreamDestroy(stream);
  cu.cuCtxPopCurrent(NULL);
  cu.cuDevicePrimaryCtxRelease(0);
  if (sim->broken()) fprintf(stderr, "%s\n", sim->first_broken());
  assert_int_equal(sim->broken(), 0);
  assert_int_equal(sim->alive(SIMGPU_ALL), 0);
  return 0;
}

/* ---- kernels ---- */

#define AT(pointer) ((CUdeviceptr)(uintptr_t)(pointer))
#define POINTER(type, address) ((type *)(uintptr_t)(address))
#define ONE_THREAD .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1

static inline CUfunction kernel(const char *name) {
  CUfunction function = NULL;
  RIGHT(cu.cuModuleGetFunction(&function, module, name));
  return function;
}

static inline void k_none(UNUSED const unsigned char *parameters, UNUSED unsigned long long threads) {}

/* Of a kernel whose parameters have 8 bytes each. */
static inline uint64_t take_number(const unsigned char *parameters, size_t k) {
  uint64_t number;
  memcpy(&number, parameters + 8 * k, sizeof number);
  return number;
}

/* One thread of the kernel with numbers as its parameters, three at most. */
#define LAUNCH(where, name, ...) launch_with(where, name, (uint64_t[3]){__VA_ARGS__})
static inline CUresult launch_with(CUstream where, const char *name, uint64_t *numbers) {
  void *parameters[] = {&numbers[0], &numbers[1], &numbers[2]};
  return cu.cuLaunchKernel(kernel(name), 1, 1, 1, 1, 1, 1, 0, where, parameters, NULL);
}

/* ---- threads ---- */

static inline pthread_t begin_thread(void *(*run)(void *data), void *data) {
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, run, data), 0);
  return thread;
}

static inline void *run_elsewhere(void *data) {
  RIGHT(cu.cuCtxPushCurrent(context));
  CUresult result = (*(CUresult(**)(void))data)();
  RIGHT(cu.cuCtxPopCurrent(NULL));
  return (void *)(uintptr_t)result;
}

static inline CUresult end_thread(pthread_t thread) {
  void *result;
  pthread_join(thread, &result);
  return (CUresult)(uintptr_t)result;
}

/* The call's result in another thread, where the context is current, too. */
static inline CUresult elsewhere(CUresult (*call)(void)) { return end_thread(begin_thread(run_elsewhere, &call)); }
#endif
