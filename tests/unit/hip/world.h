/* What tests of the HIP backend on simulated runtimes (tests/simgpu/hip.c) do in the process of a case: they open a
 * device and run a list with a loop and handwritten code. */
#ifndef GK_TESTS_HIP_WORLD_H
#define GK_TESTS_HIP_WORLD_H
#include "unit/support/elsewhere.h"
#include "gk_info.h"
#include "gk_kernel.h"
#include "simgpu/simgpu.h"
#include <dlfcn.h>

GK_SOURCE(hip_test)
GK_KERNEL(step, (inout(int, x), inout(int, left))) {
  x[i] += 1;
  left[0] -= 1;
}
GK_SOURCE_END

static const gk_param mixed_params[] = {
  {"to", "int", 4, 4, GK_PTR, GK_ACCESS_OUT}, {"a", NULL, 4, 4, GK_I32, GK_ACCESS_VALUE},
  {"b", NULL, 8, 8, GK_I64, GK_ACCESS_VALUE}, {"c", NULL, 4, 4, GK_F32, GK_ACCESS_VALUE}};
static const gk_code mixed_code = {
  .text = "extern \"C\" __global__ void mixed(int *to, int a, long long b, float c) {\n"
          "  if (threadIdx.x == 0) { to[0] = a; to[1] = (int)(b >> 32); to[2] = (int)c; }\n}\n", .block = {64}};
static const gk_kernel mixed = {.name = "mixed", .params = mixed_params, .param_count = 4, .hip = &mixed_code};

enum { X = 1, LEFT, TO, A, B, C, N };
static const gk_slot_desc slots[] = {GK_OWN(X, int, 1), GK_BUFFER(LEFT, int), GK_BUFFER(TO, int),
                                     {.slot = A, .type = GK_I32, .name = "A"}, {.slot = B, .type = GK_I64, .name = "B"},
                                     {.slot = C, .type = GK_F32, .name = "C"},
                                     {.slot = N, .type = GK_I32, .name = "N"}};
static const gk_task tasks[] = {GK_FILL(X, GK_ONE, 0), GK_RUN(mixed, N, TO, A, B, C), GK_DO_WHILE(LEFT),
                                GK_RUN(step, GK_ONE, X, LEFT), GK_END};
static const gk_list list = GK_LIST(list, tasks, slots);

/* ---- in the process of a case ------------------------------------------------------------------------------------ */

static gk_device *device;

static inline bool fails(gk_result result) {
  if (result != GK_OK) printf("%s: %s", gk_result_name(result), gk_error());
  return result != GK_OK;
}

static inline int opens(void) { return fails(gk_device_open(&(gk_device_desc){.backend = "hip"}, &device)); }

/* The reason, and the backend that is opened instead. */
static inline int say(void) {
  if (!opens()) printf("%s", gk_device_describe(device)->driver);
  gk_device_close(device);
  unsetenv("GK_BACKEND");
  if (!fails(gk_device_open(NULL, &device))) printf(" | %s", gk_device_describe(device)->backend);
  gk_device_close(device);
  return 0;
}

static inline void print_fact(void *user, const gk_fact *fact) {
  if (strcmp(fact->name, user) == 0) printf("%s %s", fact->name, fact->value);
}

static inline const simgpu *sim(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return library ? dlsym(library, "simgpu_control") : NULL;
}

/* Runs the list, and says what came of it. */
static inline bool run(int passes) {
  int left = passes, got[3] = {0}, x = 0;
  gk_graph *graph = NULL;
  int *at = gk_alloc(device, sizeof left, GK_DEVICE_MEMORY), *to = gk_alloc(device, sizeof got, GK_DEVICE_MEMORY);
  if (!at || !to || fails(gk_graph_create(device, &list, 0, &graph))) return false;
  if (fails(gk_upload(device, at, &left, sizeof left))) return false;
  if (gk_bind(graph, LEFT, &left) == GK_OK) printf(" bound memory of the host");
  gk_bind(graph, LEFT, at);
  gk_bind(graph, TO, to);
  gk_bind_int(graph, A, 7);
  gk_bind_int(graph, B, (int64_t)8 << 32);
  gk_bind_float(graph, C, 9);
  gk_bind_int(graph, N, 1);
  sim()->mark();
  if (fails(gk_launch(graph, 0)) || fails(gk_wait(graph, NULL))) return false;
  const simgpu_counts counts = sim()->counts();
  if (fails(gk_download(device, got, to, sizeof got))) return false;
  if (fails(gk_download(device, &x, gk_bound(graph, X), sizeof x))) return false;
  printf(" %d %d %d %d by %s", x, got[0], got[1], got[2], counts.launches ? "graphs" : "kernels");
  gk_graph_destroy(graph);
  gk_free(device, at);
  gk_free(device, to);
  return true;
}

static inline int runs(void) {
  if (opens()) return 0;
  gk_device_facts(device, print_fact, (void *)(uintptr_t)"arguments");
  if (run(20)) gk_device_close(device);
  printf("%s", sim()->first_broken());
  return 0;
}

/* ---- the cases' libraries and environment ------------------------------------------------------------------------ */

#define HIP5 "../../../simgpu/hip5:build/simgpu"
#define HIP6 "../../../simgpu/hip6:build/simgpu"
#define HIP7 "../../../simgpu/hip7:build/simgpu"
#define HOME "CUDA_HOME=build/simgpu"
#define NO_CACHE "GK_CACHE=off"
#endif
