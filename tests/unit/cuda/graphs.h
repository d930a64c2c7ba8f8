/* Steps that tests of graphs on the simulated CUDA driver share. */
#ifndef CUDA_GRAPHS_H
#define CUDA_GRAPHS_H
#include "world.h"
#include "unit/support/runtime_kernels.h"

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

static gk_graph *kept_graphs[64];
static size_t kept_count;

/* The end of the test destroys it. */
static inline gk_graph *kept_graph(gk_device *device, const gk_list *list, uint32_t bits) {
  assert_true(kept_count < GK_COUNT(kept_graphs));
  return kept_graphs[kept_count++] = graph_on(device, list, bits);
}

static inline void destroy_kept(void) {
  while (kept_count > 0) gk_graph_destroy(kept_graphs[--kept_count]);
}

static inline int teardown_graphs(void **state) {
  sim->hold(0); /* a test that failed in between left it so, and destroying would wait for ever */
  destroy_kept();
  return teardown_cuda(state);
}
#define TEST_OF_GRAPHS(test) DEVICE_TEST(test, setup_cuda, teardown_graphs)

static inline gk_graph *bound_graph(gk_device *device, const gk_list *list, uint32_t bits, const slot_memory *all,
                                    size_t count) {
  gk_graph *graph = kept_graph(device, list, bits);
  bind_slots(graph, all, count);
  return graph;
}
/* A kept graph whose slots have this memory: BOUND(&list, 0, {X, x}, {Y, y}). */
#define BOUND(list, bits, ...) \
  bound_graph(device, list, bits, (const slot_memory[]){__VA_ARGS__}, GK_COUNT(((const slot_memory[]){__VA_ARGS__})))

/* What a launch came to that the driver took. */
static inline gk_result end_of_launch(gk_graph *graph, int32_t label) {
  assert_ok(gk_launch(graph, label));
  return gk_wait(graph, NULL);
}

static inline gk_result launch_and_wait(gk_graph *graph, int32_t label) {
  const gk_result result = gk_launch(graph, label);
  return result == GK_OK ? gk_wait(graph, NULL) : result;
}

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

/* ---- calls of the driver that fail ------------------------------------------------------------------------------- */

/* The k-th one from now on, from 1. */
static inline void fail_call(uint64_t k, CUresult code) {
  sim->mark();
  (sim->fail)(k, code, SIMGPU_NOW);
}

/* The entry that failed, NULL: none did. From now on none fails. */
static inline const char *end_failing(void) {
  const char *failed = sim->failed();
  sim->mark();
  return failed;
}

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
    failed = end_failing();
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

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static inline int run_simulated(__attribute__((unused)) int count, char **words, CMFixtureFunction setup) {
  with_simgpu(words);
  return run_all_tests_with(setup, NULL);
}
#endif
