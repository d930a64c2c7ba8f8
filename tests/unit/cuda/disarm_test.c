/* Launches on CUDA that the driver doesn't take: the next one is as if they had never been. */
#include "cuda/backend.h"
#include "world.h"
#include "runtime/graph.h"
#include "cuda/launch.h"
#include "unit/support/runtime_kernels.h"

enum { X = 1, N, A, LEFT, FLAG };
enum { HERE = 7 };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_DEFAULT(N, int, 1), GK_DEFAULT(A, int, 1),
                                     GK_BUFFER(LEFT, int), GK_BUFFER(FLAG, int)};
/* Posts a status; has events instead; can yield. */
static const gk_task loop_tasks[] = {GK_DO_WHILE(LEFT), GK_RUN(add, N, X, A), GK_RUN(decrease, GK_ONE, LEFT), GK_END};
static const gk_task straight_tasks[] = {GK_RUN(add, N, X, A), GK_RUN(add, N, X, A), GK_RUN(decrease, GK_ONE, LEFT)};
static const gk_task yield_tasks[] = {GK_CHECKPOINT(HERE, FLAG), GK_RUN(add, N, X, A), GK_END, GK_RUN(add, N, X, A),
                                      GK_RUN(decrease, GK_ONE, LEFT)};
static const gk_list lists[] = {GK_LIST(lists[0], loop_tasks, slots), GK_LIST(lists[1], straight_tasks, slots),
                                GK_LIST(lists[2], yield_tasks, slots)};

static int *x, *left, *flag;

static gk_graph *graph_of(gk_device *device, const gk_list *list) {
  x = int_on(device, 0);
  left = int_on(device, 0);
  flag = int_on(device, 0);
  gk_graph *graph = graph_on(device, list, GK_CANCELLABLE);
  gk_bind(graph, X, x);
  gk_bind(graph, LEFT, left);
  gk_bind(graph, FLAG, flag);
  return graph;
}

/* One that ends, and what it tells: two passes, or two tasks. */
static void check_launch(gk_device *device, gk_graph *graph, bool loops) {
  const gk_status *status = NULL;
  set_int(device, x, 0);
  set_int(device, left, 2);
  sim->hold(1);
  assert_ok(gk_launch(graph, 0));
  const gk_result early = gk_poll(graph, NULL);
  sim->hold(0);
  assert_int_equal(early, GK_NOT_READY);
  assert_ok(gk_wait(graph, &status));
  assert_int_equal(status->state, GK_FINISHED);
  if (loops) assert_int_equal(status->loops[0].passes, 2);
  assert_int_equal(int_at(device, x), 2);
}

/* Each of its calls fails once. A launch whose graph had been handed over by then may have run. */
TEST_ON_CUDA(test_next_is_right) {
  for (size_t l = 0; l < GK_COUNT(lists); ++l) {
    gk_graph *graph = graph_of(device, &lists[l]);
    bool refused = false;
    check_launch(device, graph, l == 0);
    for (uint64_t k = 1;; ++k) {
      set_int(device, left, 1);
      gk_bind_int(graph, A, 1);
      sim->mark();
      (sim->fail)(k, CUDA_ERROR_OUT_OF_MEMORY, SIMGPU_NOW);
      gk_result result = gk_launch(graph, 0);
      if (result == GK_OK) result = gk_wait(graph, NULL);
      const char *failed = sim->failed();
      sim->mark();
      if (!failed) break;
      refused = refused || strcmp(failed, "cuGraphLaunch") == 0;
      if (result != GK_OK) assert_int_equal(result, GK_ERROR_MEMORY);
      for (int again = 0; again < 2; ++again) check_launch(device, graph, l == 0);
    }
    assert_true(refused);
    gk_graph_destroy(graph);
  }
}

/* Several wait behind it. */
TEST_ON_CUDA(test_queue_behind) {
  gk_graph *graph = graph_of(device, &lists[1]);
  check_launch(device, graph, false);
  for (int more = 1; more <= 4; ++more) {
    sim->mark();
    (sim->fail)(1, CUDA_ERROR_OUT_OF_MEMORY, SIMGPU_NOW);
    for (bool found = false; !found;) { /* the call that hands the graph over */
      static uint64_t k;
      (sim->fail)(++k, CUDA_ERROR_OUT_OF_MEMORY, SIMGPU_NOW);
      gk_result result = gk_launch(graph, 0);
      if (result == GK_OK) result = gk_wait(graph, NULL);
      found = sim->failed() && strcmp(sim->failed(), "cuGraphLaunch") == 0;
      if (found) {
        assert_int_equal(result, GK_ERROR_MEMORY);
        k = 0;
      }
      sim->mark();
    }
    set_int(device, x, 0);
    sim->hold(1);
    for (int k = 0; k < more; ++k) assert_ok(gk_launch(graph, 0));
    const gk_result early = gk_poll(graph, NULL);
    sim->hold(0);
    assert_int_equal(early, GK_NOT_READY);
    assert_ok(gk_wait(graph, NULL));
    assert_int_equal(int_at(device, x), 2 * more);
  }
  gk_graph_destroy(graph);
}

/* A cancel that came in time for a launch that the driver then refused stops no other. */
TEST_ON_CUDA(test_cancel_of_a_refused_launch) {
  for (size_t l = 0; l < GK_COUNT(lists); l += 2) {
    gk_graph *graph = graph_of(device, &lists[l]);
    gki_cuda_graph *native = NULL;
    check_launch(device, graph, l == 0);
    assert_ok(gki_cuda_native(graph->state, &native));
    bool refused = false;
    for (uint64_t k = 1; !refused; ++k) {
      const int32_t cancel = 1;
      gk_applied applied = GK_UNCHANGED;
      const gk_launch_args cancelled = {.launch = 2, .cancel = (int32_t *)(uintptr_t)&cancel, .applied = &applied};
      sim->mark();
      (sim->fail)(k, CUDA_ERROR_OUT_OF_MEMORY, SIMGPU_NOW);
      assert_int_equal(gki_cuda_launch(native, &cancelled), GK_ERROR_MEMORY);
      refused = strcmp(sim->failed(), "cuGraphLaunch") == 0;
      sim->mark();
    }
    for (int again = 0; again < 2; ++again) check_launch(device, graph, l == 0);
    gk_graph_destroy(graph);
  }
}

/* Launches from there, of which a call fails each time, then one that goes through. */
static void check_target(gk_device *device, gk_graph *graph, int32_t label, int adds) {
  for (uint64_t k = 1;; ++k) {
    gk_bind_int(graph, A, 1);
    sim->mark();
    (sim->fail)(k, CUDA_ERROR_OUT_OF_MEMORY, SIMGPU_NOW);
    gk_result result = gk_launch(graph, label);
    if (result == GK_OK) result = gk_wait(graph, NULL);
    const char *failed = sim->failed();
    sim->mark();
    set_int(device, x, 0);
    assert_ok(gk_launch(graph, label));
    assert_ok(gk_wait(graph, NULL));
    assert_int_equal(int_at(device, x), adds);
    /* And the other way round: the next one that fails has to aim. */
    set_int(device, x, 0);
    assert_ok(gk_launch(graph, label ? 0 : HERE));
    assert_ok(gk_wait(graph, NULL));
    assert_int_equal(int_at(device, x), 3 - adds);
    if (!failed) break;
  }
}

/* Where a launch begins isn't taken for said after a launch that failed to say it, by updating a node or by a copy. */
TEST_ON_CUDA(test_target_of_the_next) {
  static const gk_task tasks[] = {GK_RUN(add, N, X, A), GK_CHECKPOINT(HERE, FLAG), GK_RUN(add, N, X, A), GK_END,
                                  GK_RUN(decrease, GK_ONE, LEFT)};
  static const gk_list list = GK_LIST(list, tasks, slots);
  for (int k = 0; k < 2; ++k) { /* devices of their own, since what was found out about one is kept */
    gk_device *opened = NULL;
    sim->answer_no(k ? "P1d" : NULL);
    assert_ok(gk_device_open(&(gk_device_desc){.backend = "cuda", .ordinal = k + 1}, &opened));
    gk_graph *graph = graph_of(opened, &list);
    check_target(opened, graph, HERE, 1);
    check_target(opened, graph, 0, 2);
    gk_graph_destroy(graph);
    gk_device_close(opened);
    sim->answer_no(NULL);
  }
}

int main(int count, char **words) {
  (void)count;
  setenv("SIMGPU_DEVICES", "3", 1);
  with_simgpu(words);
  return run_all_tests();
}
