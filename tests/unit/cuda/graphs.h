/* Steps that tests of graphs on the simulated CUDA driver share. */
#ifndef CUDA_GRAPHS_H
#define CUDA_GRAPHS_H
#include "world.h"
#include "runtime/graph.h"
#include "simgpu/simnvrtc.h"
#include "unit/support/await.h"

static inline const gk_capability *capability_of(const gk_device *device, const char *construct) {
  const gk_device_info *info = gk_device_describe(device);
  for (size_t k = 0; k < info->capability_count; ++k)
    if (strcmp(info->capabilities[k].construct, construct) == 0) return &info->capabilities[k];
  return NULL;
}

/* Each NVRTC is of the first of these versions that has its major number, or isn't there. */
static inline void set_nvrtc(const char *versions) {
  static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"};
  for (size_t k = 0; k < GK_COUNT(names); ++k) {
    const simnvrtc_control *control = dlsym(dlopen(names[k], RTLD_NOW | RTLD_LOCAL), "simnvrtc_control");
    assert_non_null(control);
    control->set_versions(versions);
  }
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static inline int *zeros(gk_device *device, size_t count) {
  return gk_alloc(device, count * sizeof(int), GK_DEVICE_MEMORY);
}

/* Each of many launches under way sees what was bound for it, structs too. The graph multiplies `x` by the first
 * int of `its_line` and adds the second one. */
static inline void check_queue(gk_device *device, gk_graph *graph, gk_slot x, gk_slot its_line) {
  int *memory[16];
  for (int k = 0; k < 16; ++k) memory[k] = int_on(device, 1);
  sim->hold(true);
  for (int k = 0; k < 16; ++k) {
    const int numbers[] = {k, 1000};
    gk_bind_bytes(graph, its_line, numbers, sizeof numbers);
    gk_bind(graph, x, memory[k]);
    assert_ok(gk_launch(graph, 0));
  }
  assert_int_equal(gk_launch(graph, 0), GK_ERROR_BUSY);
  assert_int_equal(gk_poll(graph, NULL), GK_NOT_READY);
  sim->hold(false);
  assert_ok(gk_wait(graph, NULL));
  for (int k = 0; k < 16; ++k) assert_int_equal(int_at(device, memory[k]), 1000 + k);
}

static inline void *launch_it(void *graph) { return (void *)(uintptr_t)gk_launch(graph, 0); }

/* The 17th launch waits until the driver has ended the first one. */
static inline void check_waiting(gk_device *device, gk_graph *graph, gk_slot x, gk_slot its_line) {
  int *memory = int_on(device, 1);
  const gk_status *status = NULL;
  gk_bind_bytes(graph, its_line, (const int[]){2, 0}, 2 * sizeof(int));
  gk_bind(graph, x, memory);
  sim->hold(true);
  for (int k = 0; k < 16; ++k) assert_ok(gk_launch(graph, 0));
  const pthread_t thread = start_thread(launch_it, graph);
  await(atomic_load(&graph->waiting) == GKI_ONE_WAITS);
  sim->hold(false);
  assert_int_equal((uintptr_t)join_thread(thread), GK_OK);
  assert_ok(gk_wait(graph, &status));
  assert_int_equal(status->launch, 17);
  assert_int_equal(int_at(device, memory), 1 << 17);
}

/* ---- calls of the driver that fail ------------------------------------------------------------------------------- */

typedef gk_result attempt_fn(gk_device *device, gk_graph **graph);
typedef void outcome_fn(gk_device *device, gk_graph *graph, gk_result result, const char *failed);

/* Each call of the driver that `attempt` makes fails once. Afterwards `check` looks at the graph, if it was made, and
 * at the last result. Nothing is left behind and no rule is broken. */
static inline void fail_each_call(gk_device *device, attempt_fn *attempt, outcome_fn *check) {
  const size_t alive = alive_but_memory();
  const char *failed = "";
  for (uint64_t k = 1; failed; ++k) {
    gk_graph *graph = NULL;
    fail_call(k, CUDA_ERROR_UNKNOWN);
    const gk_result result = attempt(device, &graph);
    failed = failed_call();
    check(device, graph, result, failed);
    gk_graph_destroy(graph);
    assert_int_equal(alive_but_memory(), alive);
    assert_int_equal(sim->broken(), 0);
    assert_true(failed || k > 30);
  }
}

/* The first call of `entry` that `attempt` makes fails. `graph` is what that attempt left. */
static inline gk_result fail_entry(gk_device *device, const char *entry, CUresult code, attempt_fn *attempt,
                                   gk_graph **graph) {
  for (uint64_t k = 1;; ++k) {
    *graph = NULL;
    fail_call(k, code);
    const gk_result result = attempt(device, graph);
    if (!sim->failed()) fail_msg("nothing calls %s", entry);
    if (strcmp(sim->failed(), entry) == 0) return result;
    gk_graph_destroy(*graph);
  }
}

/* Ends a capture in which nothing was recorded. */
static inline void end_empty_capture(CUstream stream) {
  CUgraph captured;
  size_t count = 99;
  RIGHT(cu.cuStreamEndCapture(stream, &captured));
  RIGHT(cu.cuGraphGetNodes(captured, NULL, &count));
  assert_int_equal(count, 0);
  RIGHT(cu.cuGraphDestroy(captured));
}
#endif
