/* CALL_HOSTs on CUDA. OLD: on a driver without conditional nodes, where the host enqueues ahead. */
#include "graphs.h"
#include "lists.h"

#ifdef OLD
enum { IS_OLD = 1 };
#define VERSION OLD
#else
enum { IS_OLD = 0 };
#define VERSION "13.0"
#endif

static gk_result double_it(const gk_value *args, void *native) {
  (void)native;
  *(int *)args[0].ptr *= 2;
  return GK_OK;
}

/* The first task of a launch on the caller's stream is the host's: the work there comes before it. */
TEST_ON_CUDA(test_host_follows_the_stream) {
  LIST(straight_host, GK_CALL_HOST(double_it, X), GK_RUN(add, N, X, A));
  LIST(deciding_host, GK_CALL_HOST(double_it, X), GK_IF(FLAG), GK_END, GK_RUN(add, N, X, A));
  static const gk_list *const lists[] = {&straight_host, &deciding_host};
  int *x = gk_alloc(device, sizeof *x, GK_HOST_MEMORY);
  enter_context(device);
  CUstream stream = new_stream();
  for (int k = 0; k < 2; ++k) {
    gk_graph *graph = NEW_GRAPH(device, lists[k], k && IS_OLD ? 0 : GK_HOST_GATED, {X, x}, {FLAG, int_on(device, 0)});
    for (uint64_t seed = 0; seed < 10; ++seed) {
      sim->set_seed(seed);
      for (int n = 0; n < 5; ++n) fill_on(stream, x, n);
      assert_ok(gk_launch_on(graph, 0, stream));
      assert_ok(gk_wait(graph, NULL));
      assert_int_equal(*x, 0x08080809);
    }
    discard(graph);
  }
  gk_free(device, x);
}

/* Refused by name where the device decides, before anything is recorded. */
TEST_ON_CUDA(test_native_is_refused) {
  LIST(list, GK_CALL(do_nothing, 0), GK_CALL_HOST(double_it, X));
  gk_graph *graph = NULL;
  called = 0;
  assert_fails(GK_ERROR_UNSUPPORTED, "task 1 (double_it): it is work of the host in a list that cuda decides on the "
               "device", gk_graph_create(device, &list, 0, &graph));
  assert_null(graph);
  assert_int_equal(called, 0);
}

int main(UNUSED int count, char **words) {
  setenv("SIMGPU_VERSION", VERSION, 1);
  return run_on_simgpu(words);
}
