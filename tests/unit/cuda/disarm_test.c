/* Launches on CUDA that the driver refuses: the next launch works as if they had never been made. */
#include "cuda/backend.h"
#include "runtime/graph.h"
#include "cuda/launch.h"
#include "lists.h"

/* Posts a status; has events instead; can yield. */
LIST(twice, GK_RUN(add, N, X, A), GK_RUN(add, N, X, A), GK_RUN(decrease, GK_ONE, LEFT));
LIST(yielding, GK_CHECKPOINT(HERE, FLAG), GK_RUN(add, N, X, A), GK_END, GK_RUN(add, N, X, A),
     GK_RUN(decrease, GK_ONE, LEFT));
static const gk_list *const lists[] = {&looping, &twice, &yielding};

static int *x, *left;

static gk_graph *graph_of(gk_device *device, const gk_list *list) {
  x = int_on(device, 0);
  left = int_on(device, 0);
  return NEW_GRAPH(device, list, GK_CANCELLABLE, {X, x}, {LEFT, left}, {FLAG, int_on(device, 0)});
}

/* That many launches wait, end and add 2 to X each, in two passes where there is a loop. */
static void check_launches(gk_device *device, gk_graph *graph, int count) {
  const gk_status *status = NULL;
  SET_VALUES({x, 0}, {left, 2});
  sim->hold(1);
  for (int k = 0; k < count; ++k) assert_ok(gk_launch(graph, 0));
  const gk_result early = gk_poll(graph, NULL);
  sim->hold(0);
  assert_int_equal(early, GK_NOT_READY);
  assert_ok(gk_wait(graph, &status));
  assert_int_equal(status->state, GK_FINISHED);
  if (status->loop_count) assert_int_equal(status->loops[0].passes, 2);
  assert_int_equal(int_at(device, x), 2 * count);
}

/* Each of its calls fails once. A launch whose graph had been handed over by then may have run. */
TEST_ON_CUDA(test_next_is_right) {
  for (size_t l = 0; l < GK_COUNT(lists); ++l) {
    gk_graph *graph = graph_of(device, lists[l]);
    bool refused = false;
    check_launches(device, graph, 1);
    FOR_EACH_CALL(k, failed) {
      set_int(device, left, 1);
      gk_bind_int(graph, A, 1);
      const gk_result result = FAILING(k, CUDA_ERROR_OUT_OF_MEMORY, failed, run_on_stream(graph, 0, NULL));
      if (!failed) break;
      refused = refused || strcmp(failed, "cuGraphLaunch") == 0;
      if (result != GK_OK) assert_int_equal(result, GK_ERROR_MEMORY);
      for (int again = 0; again < 2; ++again) check_launches(device, graph, 1);
    }
    assert_true(refused);
  }
}

/* Several wait behind it. */
TEST_ON_CUDA(test_queue_behind) {
  gk_graph *graph = graph_of(device, &twice);
  check_launches(device, graph, 1);
  for (int more = 1; more <= 4; ++more) {
    const char *failed = NULL;
    gk_result result = GK_OK;
    for (uint64_t k = 1; !failed || strcmp(failed, "cuGraphLaunch") != 0; ++k)
      result = FAILING(k, CUDA_ERROR_OUT_OF_MEMORY, failed, run_on_stream(graph, 0, NULL));
    assert_int_equal(result, GK_ERROR_MEMORY);
    check_launches(device, graph, more);
  }
}

/* A cancel that was meant for a launch that the driver then refused doesn't stop another launch. */
TEST_ON_CUDA(test_cancel_of_a_refused_launch) {
  for (size_t l = 0; l < GK_COUNT(lists); l += 2) {
    gk_graph *graph = graph_of(device, lists[l]);
    gki_cuda_graph *native = NULL;
    check_launches(device, graph, 1);
    assert_ok(gki_cuda_native(graph->state, &native));
    const char *failed = "";
    for (uint64_t k = 1; strcmp(failed, "cuGraphLaunch") != 0; ++k) {
      int32_t cancel = 1;
      gk_applied applied = GK_UNCHANGED;
      const gk_launch_args cancelled = {.launch = 2, .cancel = &cancel, .applied = &applied};
      assert_int_equal(FAILING(k, CUDA_ERROR_OUT_OF_MEMORY, failed, gki_cuda_launch(native, &cancelled)),
                       GK_ERROR_MEMORY);
    }
    for (int again = 0; again < 2; ++again) check_launches(device, graph, 1);
  }
}

/* Launches from there, in which one call fails each time, then a launch that succeeds. */
static void check_target(gk_device *device, gk_graph *graph, int32_t label, int adds) {
  FOR_EACH_CALL(k, failed) {
    gk_bind_int(graph, A, 1);
    (void)FAILING(k, CUDA_ERROR_OUT_OF_MEMORY, failed, run_on_stream(graph, label, NULL));
    for (int other = 0; other < 2; ++other) { /* and the reverse: the next launch that fails must set the target */
      set_int(device, x, 0);
      run_to_end(graph, (label != 0) != other ? HERE : 0);
      assert_int_equal(int_at(device, x), other ? 3 - adds : adds);
    }
  }
}

/* A launch that failed to tell the device where to begin, by an update or a copy, leaves that to the next launch. */
CLEAN(test_target_of_the_next) {
  LIST(list, GK_RUN(add, N, X, A), GK_CHECKPOINT(HERE, FLAG), GK_RUN(add, N, X, A), GK_END,
       GK_RUN(decrease, GK_ONE, LEFT));
  for (int k = 0; k < 2; ++k) { /* devices of their own, since what gk finds out about a device is kept */
    sim->answer_no(k ? "P1d" : NULL);
    gk_device *device = new_device("cuda", k + 1);
    gk_graph *graph = graph_of(device, &list);
    check_target(device, graph, HERE, 1);
    check_target(device, graph, 0, 2);
    sim->answer_no(NULL);
  }
}

int main(UNUSED int count, char **words) {
  setenv("SIMGPU_DEVICES", "3", 1);
  return run_on_simgpu(words);
}
