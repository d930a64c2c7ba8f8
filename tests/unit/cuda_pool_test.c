/* Memory of graphs is kept for the next ones, so that making and destroying one doesn't wait for what is under way. */
#include "cuda_world.h"

enum { NONE, X, N, LEFT };
static const gk_slot_desc slots[] = {GK_OWN(X, int, 8), GK_DEFAULT(N, int, 8), GK_BUFFER(LEFT, int)};
static const gk_task tasks[] = {GK_DO_WHILE(LEFT), GK_FILL(X, N, 5), GK_FILL(LEFT, GK_ONE, 0), GK_END};
static const gk_list list = GK_LIST(list, tasks, slots);
static const gk_task straight_tasks[] = {GK_FILL(X, N, 6)};
static const gk_slot_desc straight_slots[] = {GK_BUFFER(X, int), GK_DEFAULT(N, int, 8)};
static const gk_list straight = GK_LIST(straight, straight_tasks, straight_slots);

/* One that never ends: what waits for the device hangs. */
static void beside_one_that_takes_long(void **state) {
  gk_device *device = *state;
  gk_graph *slow = graph_on(device, &list, 0);
  int *left = int_on(device, 1);
  assert_ok(gk_bind(slow, LEFT, left));
  sim->answer_no("ends");
  assert_ok(gk_launch(slow, 0));
  sim->mark();
  for (uint32_t bits = 0; bits <= GK_HOST_GATED; bits += GK_HOST_GATED)
    gk_graph_destroy(graph_on(device, &straight, bits));
  assert_int_equal(sim->calls("cuMemFree"), 0);
  assert_int_equal(sim->calls("cuMemHostUnregister"), 0);
  sim->answer_no(NULL);
  assert_ok(gk_wait(slow, NULL));
  gk_graph_destroy(slow);
  gk_free(device, left);
}

static void is_taken_again(void **state) {
  gk_device *device = *state;
  gk_graph_destroy(graph_on(device, &list, 0));
  sim->mark();
  for (int k = 0; k < 5; ++k) {
    gk_graph *graph = graph_on(device, &list, 0);
    int *left = int_on(device, 1);
    assert_ok(gk_bind(graph, LEFT, left));
    assert_ok(gk_launch(graph, 0));
    assert_ok(gk_wait(graph, NULL));
    assert_int_equal(int_at(device, (int *)gk_bound(graph, X) + 7), 5);
    gk_graph_destroy(graph);
    gk_free(device, left);
  }
  assert_int_equal(sim->calls("cuMemHostRegister"), 0);
  assert_int_equal(sim->calls("cuMemAlloc"), 10); /* X and LEFT, which are the program's */
  assert_int_equal(sim->calls("cuMemFree"), 10);
}

static void is_bounded(void **state) {
  gk_device *device = *state;
  enum { GRAPHS = 100 };
  gk_graph *graphs[GRAPHS];
  for (int k = 0; k < GRAPHS; ++k) graphs[k] = graph_on(device, &straight, 0);
  const size_t at_work = sim->alive(SIMGPU_MEMORY) + sim->alive(SIMGPU_PINNED);
  for (int k = 0; k < GRAPHS; ++k) gk_graph_destroy(graphs[k]);
  const size_t kept = sim->alive(SIMGPU_MEMORY) + sim->alive(SIMGPU_PINNED);
  assert_true(at_work > 300);
  assert_true(kept >= 200 && kept <= 256);
}

/* Before there is no memory, what is kept goes back. */
static void goes_back_when_memory_runs_out(void **state) {
  gk_device *device = *state;
  for (int kind = 0; kind < 2; ++kind) {
    gk_graph_destroy(graph_on(device, &list, 0));
    assert_true(sim->alive(SIMGPU_PINNED) > 0);
    sim->mark();
    (sim->fail)(3, CUDA_ERROR_OUT_OF_MEMORY, SIMGPU_NOW); /* behind the context's push and the mode's exchange */
    void *memory = gk_alloc(device, 100, kind ? GK_HOST_MEMORY : GK_DEVICE_MEMORY);
    assert_string_equal(sim->failed(), kind ? "cuMemHostAlloc" : "cuMemAlloc");
    assert_non_null(memory);
    assert_int_equal(sim->alive(SIMGPU_PINNED), kind);
    gk_free(device, memory);
  }
  sim->mark();
  (sim->fail)(3, CUDA_ERROR_OUT_OF_MEMORY, SIMGPU_NOW); /* nothing is kept: it is so */
  assert_null(gk_alloc(device, 100, GK_DEVICE_MEMORY));
  assert_says("cuMemAlloc of 100 bytes: out of memory");
}

/* Where the driver registers no memory it gives its own. */
static void takes_the_drivers(void **state) {
  gk_device *device = *state;
  uint64_t k = 2; /* behind the context's push and the mode's exchange */
  gk_graph *graph = NULL;
  do { /* which call it is */
    sim->mark();
    (sim->fail)(++k, CUDA_ERROR_NOT_SUPPORTED, SIMGPU_NOW);
    graph = NULL;
    if (gk_graph_create(device, &straight, 0, &graph) == GK_OK) gk_graph_destroy(graph);
    if (!sim->failed()) fail_msg("no call");
  } while (strcmp(sim->failed(), "cuMemHostRegister") != 0);
  assert_non_null(graph);
  assert_true(sim->calls("cuMemHostAlloc") > 0);
}

int main(int count, char **words) {
  (void)count;
  with_simgpu(words);
  const struct CMUnitTest tests_here[] = {
    ON_CUDA(beside_one_that_takes_long), ON_CUDA(is_taken_again), ON_CUDA(is_bounded),
    ON_CUDA(goes_back_when_memory_runs_out), ON_CUDA(takes_the_drivers),
  };
  return cmocka_run_group_tests(tests_here, NULL, NULL);
}
