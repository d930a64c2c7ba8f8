/* Steps that tests of graphs on the simulated CUDA driver share. */
#ifndef CUDA_GRAPHS_H
#define CUDA_GRAPHS_H
#include "world.h"

static inline const gk_capability *capability_of(const gk_device *device, const char *construct) {
  const gk_device_info *info = gk_device_describe(device);
  for (size_t k = 0; k < info->capability_count; ++k)
    if (strcmp(info->capabilities[k].construct, construct) == 0) return &info->capabilities[k];
  return NULL;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static inline int *zeros(gk_device *device, size_t count) {
  return gk_alloc(device, count * sizeof(int), GK_DEVICE_MEMORY);
}

typedef struct int_value { int *at; int value; } int_value;

static inline void assert_values(gk_device *device, const char *text, const int_value *all, size_t count) {
  for (size_t k = 0; k < count; ++k) {
    const int have = int_at(device, all[k].at);
    if (have != all[k].value) fail_msg("%s: value %zu is %d, not %d", text, k, have, all[k].value);
  }
}
static inline void set_values(gk_device *device, const int_value *all, size_t count) {
  for (size_t k = 0; k < count; ++k) set_int(device, all[k].at, all[k].value);
}
#define INT_VALUES(...) (const int_value[]){__VA_ARGS__}, GK_COUNT(((const int_value[]){__VA_ARGS__}))
/* ASSERT_VALUES({x, 3}, {y, 5}); SET_VALUES({x, 0}, {left, 3}). */
#define ASSERT_VALUES(...) assert_values(device, #__VA_ARGS__, INT_VALUES(__VA_ARGS__))
#define SET_VALUES(...) set_values(device, INT_VALUES(__VA_ARGS__))

static inline void assert_ints(gk_device *device, const int *at, const int *want, size_t count) {
  int have[64];
  assert_ok(gk_download(device, have, at, count * sizeof *have));
  for (size_t k = 0; k < count; ++k)
    if (have[k] != want[k]) fail_msg("at %zu: %d, not %d", k, have[k], want[k]);
}
/* Ints that follow each other: ASSERT_INTS(x, 1, 2, 3). */
#define ASSERT_INTS(at, ...) assert_ints(device, at, (const int[]){__VA_ARGS__}, GK_COUNT(((const int[]){__VA_ARGS__})))

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

/* ---- calls of the driver that fail ------------------------------------------------------------------------------- */

typedef gk_result attempt_fn(gk_device *device, gk_graph **graph);
typedef void outcome_fn(gk_device *device, gk_graph *graph, gk_result result, const char *failed);

/* Each call of the driver that `attempt` makes fails once. Afterwards `check` looks at the graph, if it is there, and
 * at the last result; nothing is left behind and no rule is broken. */
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
#endif
