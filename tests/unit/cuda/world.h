/* For tests of the CUDA backend on the simulated driver: the program starts itself again with that driver in its path,
 * and every test begins and ends with nothing broken and nothing alive. */
#ifndef CUDA_WORLD_H
#define CUDA_WORLD_H
#include "unit/support/runtime.h"
#include "simgpu/simgpu.h"
#include "gk_cuda.h"
#include <dlfcn.h>
#include <unistd.h>

static const simgpu *sim;

/* The same driver by entries that the test finds itself, as a program does that uses CUDA beside gk. An entry that the
 * driver doesn't have is NULL. */
static struct user_driver {
#define MEMBER(name, version, since, parameters) CUresult(*name) parameters;
  GKI_CUDA_ENTRIES(MEMBER) SIMGPU_ENTRIES(MEMBER)
#undef MEMBER
} cu;

#define RIGHT(call) assert_int_equal((call), CUDA_SUCCESS)

static inline void find_entries_in(void *library) {
  CUresult (*find)(const char *name, void **entry, int version, cuuint64_t flags);
  void *entry = NULL;
  *(void **)&find = dlsym(library, "cuGetProcAddress");
#define FIND(name, version, since, parameters) \
  if (find(#name, &entry, version, 0) != CUDA_SUCCESS) entry = NULL; \
  *(void **)&cu.name = entry;
  GKI_CUDA_ENTRIES(FIND) SIMGPU_ENTRIES(FIND)
#undef FIND
}

/* The dynamic linker reads its path at the start of a process only. */
static inline void with_simgpu(char **words) {
  char path[4096] = "", folder[4200];
  if (readlink("/proc/self/exe", path, sizeof path - 1) < 0) abort();
  char *build = strstr(path, "/tests/unit/");
  if (!build) abort();
  *build = 0;
  snprintf(folder, sizeof folder, "%s/simgpu", path);
  const char *before = getenv("LD_LIBRARY_PATH");
  if (!before || strncmp(before, folder, strlen(folder)) != 0) {
    setenv("LD_LIBRARY_PATH", folder, 1);
    setenv("CUDA_HOME", folder, 1); /* no other NVRTC */
    setenv("GK_CACHE", "off", 0);
    execv("/proc/self/exe", words);
    abort();
  }
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library || !(sim = dlsym(library, "simgpu_control"))) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  find_entries_in(library);
}

static inline int run_on_simgpu(char **words) {
  with_simgpu(words);
  return run_all_tests();
}

/* ---- what the test's end gives back ------------------------------------------------------------------------------ */

/* The test's end gives back what the functions below make, the last one first, before its device is closed; discard
 * does so earlier. */
static struct kept { void *what; void (*discard)(void *what); } kept_things[1024];
static size_t kept_count;
static bool driver_is_lost; /* a test sets it: calls that give something back fail, and give it back all the same */

static inline void *keep(void *what, void (*discard)(void *what)) {
  assert_true(kept_count < GK_COUNT(kept_things));
  kept_things[kept_count++] = (struct kept){what, discard};
  return what;
}

static inline void discard(void *what) {
  size_t k = kept_count;
  while (k > 0 && kept_things[k - 1].what != what) --k;
  if (k == 0) fail_msg("%p isn't kept", what);
  const struct kept found = kept_things[k - 1];
  memmove(kept_things + k - 1, kept_things + k, (kept_count - k) * sizeof *kept_things);
  --kept_count;
  found.discard(found.what);
}

static inline void discard_all(void) {
  while (kept_count) discard(kept_things[kept_count - 1].what);
}

static inline void expect_discarded(CUresult result) {
  if (!driver_is_lost) RIGHT(result);
}
static inline void destroy_graph(void *graph) { gk_graph_destroy(graph); }
static inline void close_device(void *device) { gk_device_close(device); }
static inline void destroy_stream(void *stream) { expect_discarded(cu.cuStreamDestroy(stream)); }
static inline void destroy_event(void *event) { expect_discarded(cu.cuEventDestroy(event)); }
static inline void destroy_cu_graph(void *graph) { expect_discarded(cu.cuGraphDestroy(graph)); }
static inline void destroy_exec(void *exec) { expect_discarded(cu.cuGraphExecDestroy(exec)); }
static inline void leave_context(UNUSED void *context) { expect_discarded(cu.cuCtxPopCurrent(NULL)); }

static inline gk_device *new_device(const char *backend, int ordinal) {
  gk_device *device = NULL;
  assert_ok(gk_device_open(&(gk_device_desc){.backend = backend, .ordinal = ordinal}, &device));
  return keep(device, close_device);
}

static inline gk_graph *new_graph(gk_device *device, const gk_list *list, uint32_t bits) {
  return keep(graph_on(device, list, bits), destroy_graph);
}

static inline gk_graph *new_bound_graph(gk_device *device, const gk_list *list, uint32_t bits, const slot_memory *all,
                                        size_t count) {
  return keep(bound_graph_on(device, list, bits, all, count), destroy_graph);
}

/* NEW_GRAPH(device, &list, bits, {X, x}, {LEFT, left}): the graph of a list with its slots bound to memory. */
#define NEW_GRAPH(device, list, bits, ...) \
  new_bound_graph(device, list, bits, (const slot_memory[]){__VA_ARGS__}, \
                  GK_COUNT(((const slot_memory[]){__VA_ARGS__})))

/* The device's context is this thread's current one until the test ends. */
static inline CUcontext enter_context(gk_device *device) {
  CUcontext context = NULL;
  assert_ok(gk_cuda_context(device, &context, NULL));
  RIGHT(cu.cuCtxPushCurrent(context));
  return keep(context, leave_context);
}

static inline CUstream new_stream(void) {
  CUstream stream = NULL;
  RIGHT(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  return keep(stream, destroy_stream);
}

static inline CUevent new_event(void) {
  CUevent event = NULL;
  RIGHT(cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  return keep(event, destroy_event);
}

static inline CUgraph new_cu_graph(void) {
  CUgraph graph = NULL;
  RIGHT(cu.cuGraphCreate(&graph, 0));
  return keep(graph, destroy_cu_graph);
}

static inline CUgraphExec new_exec(CUgraph graph) {
  CUgraphExec exec = NULL;
  const CUresult result = cu.cuGraphInstantiateWithFlags(&exec, graph, 0);
  if (result != CUDA_SUCCESS) fail_msg("instantiation: %d, %s", (int)result, sim->refused());
  return keep(exec, destroy_exec);
}

/* ---- fixtures ---------------------------------------------------------------------------------------------------- */

static inline int begin_clean(UNUSED void **state) {
  kept_count = 0;
  driver_is_lost = false;
  sim->forgive();
  sim->set_seed(1);
  sim->set_passes(100000);
  sim->mark();
  return cu.cuInit(0) == CUDA_SUCCESS ? 0 : -1;
}

static inline int end_clean(UNUSED void **state) {
  sim->hold(0); /* a failed test may have left it so, and giving back would wait for ever */
  discard_all();
  if (sim->broken()) fprintf(stderr, "%s\n", sim->first_broken());
  for (int kind = SIMGPU_ALL + 1; kind < SIMGPU_KINDS; ++kind) {
    const size_t count = sim->alive((simgpu_kind)kind);
    if (count) fprintf(stderr, "alive of kind %d: %zu\n", kind, count);
  }
  return sim->broken() || sim->alive(SIMGPU_ALL) ? -1 : 0;
}

static inline int setup_cuda(void **state) {
  if (begin_clean(state) != 0) return -1;
  gk_result result = gk_device_open(&(gk_device_desc){.backend = "cuda"}, (gk_device **)state);
  if (result != GK_OK) fprintf(stderr, "%s\n", gk_error());
  return result == GK_OK ? 0 : -1;
}

static inline int teardown_cuda(void **state) {
  sim->hold(0);
  discard_all();
  gk_device_close(*state);
  return end_clean(state);
}

static uint32_t mode_bits;
static inline int setup_in_mode(void **state) {
  mode_bits = *state && strcmp(*state, "gated") == 0 ? GK_HOST_GATED : 0;
  return setup_cuda(state);
}

/* A test that makes its devices itself; one with a device; one for graphs of both modes: mode_bits are theirs. */
#define CLEAN(test) TEST_WITH(test, begin_clean, end_clean)
#define TEST_ON_CUDA(test) DEVICE_TEST(test, setup_cuda, teardown_cuda)
#define TEST_IN_MODES(test) DEVICE_TEST_ON("native gated", test, setup_in_mode, teardown_cuda)

/* Except for memory, which devices keep for later graphs; lost memory is seen when they are closed. */
static inline size_t alive_but_memory(void) {
  return sim->alive(SIMGPU_ALL) - sim->alive(SIMGPU_MEMORY) - sim->alive(SIMGPU_PINNED);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* From here to failed_call the k-th call of the driver fails. */
static inline void fail_call(uint64_t k, CUresult code) {
  sim->mark();
  (sim->fail)(k, code, SIMGPU_NOW);
}

/* The entry that failed; NULL: there were fewer calls. */
static inline const char *failed_call(void) {
  const char *entry = sim->failed();
  sim->mark();
  return entry;
}

static inline gk_result note_failed(const char **failed, gk_result result) {
  *failed = failed_call();
  return result;
}

/* Each call of the driver that an expression makes fails once, until there is no k-th call: FOR_EACH_CALL(k, failed) {
 * ... result = FAILING(k, code, failed, expression); ... } */
#define FAILING(k, code, failed, call) (fail_call(k, code), note_failed(&(failed), (call)))
#define FOR_EACH_CALL(k, failed) \
  const char *failed = ""; \
  for (uint64_t k = 1; failed; ++k)

/* Whether it is one of those words, which have spaces in between. */
static inline bool is_one_of(const char *word, const char *words) {
  const size_t length = strlen(word);
  for (const char *at = words; (at = strstr(at, word)); ++at)
    if ((at == words || at[-1] == ' ') && (at[length] == ' ' || !at[length])) return true;
  return false;
}

/* The result of a launch on a stream and the wait for it; NULL: the device's own stream. */
static inline gk_result run_on_stream(gk_graph *graph, int32_t label, CUstream stream) {
  const gk_result result = stream ? gk_launch_on(graph, label, stream) : gk_launch(graph, label);
  return result == GK_OK ? gk_wait(graph, NULL) : result;
}

/* What that library of NVRTC makes of a source, PTX or a cubin; the caller frees it. */
static inline void *compile_source(const char *library, const char *source, const char *const *options, int count,
                                   bool is_ptx, size_t *bytes) {
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
#define MEMBER(type, name, parameters) type(*name) parameters;
  struct { GKI_NVRTC_ENTRIES(MEMBER) } rtc;
#undef MEMBER
#define FIND(type, name, parameters) *(void **)&rtc.name = dlsym(handle, #name);
  GKI_NVRTC_ENTRIES(FIND)
#undef FIND
  nvrtcProgram program;
  assert_int_equal(rtc.nvrtcCreateProgram(&program, source, "source.cu", 0, NULL, NULL), NVRTC_SUCCESS);
  assert_int_equal(rtc.nvrtcCompileProgram(program, count, options), NVRTC_SUCCESS);
  assert_int_equal((is_ptx ? rtc.nvrtcGetPTXSize : rtc.nvrtcGetCUBINSize)(program, bytes), NVRTC_SUCCESS);
  void *image = malloc(*bytes);
  assert_int_equal((is_ptx ? rtc.nvrtcGetPTX : rtc.nvrtcGetCUBIN)(program, image), NVRTC_SUCCESS);
  assert_int_equal(rtc.nvrtcDestroyProgram(&program), NVRTC_SUCCESS);
  return image;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static inline int *taken(size_t count) {
  CUdeviceptr memory = 0;
  RIGHT(cu.cuMemAlloc(&memory, count * sizeof(int)));
  return (int *)(uintptr_t)memory;
}

/* An allocation of device memory fails with these words in the message. */
static inline void assert_no_memory(gk_device *device, const char *words) {
  assert_null(gk_alloc(device, 4, GK_DEVICE_MEMORY));
  assert_says(words);
}

static inline CUdeviceptr at(const void *memory) { return (CUdeviceptr)(uintptr_t)memory; }
static inline void give(const void *memory) { RIGHT(cu.cuMemFree(at(memory))); }

/* Bytes of each int that follow in the stream. */
static inline void fill_on(CUstream stream, const int *memory, int byte) {
  RIGHT(cu.cuMemsetD8Async(at(memory), (unsigned char)byte, sizeof *memory, stream));
}
#endif
