/* A driver that says "no" to much of what gk asks: lists that mind get plain gates and run on the device all the same,
 * and where to resume goes over by a copy. */
#include "world.h"
#include "unit/support/runtime_kernels.h"

enum { X = 1, N, A, FLAG, LEFT, SLOTS };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_SCALAR(N, int), GK_SCALAR(A, int), GK_BUFFER(FLAG, int),
                                     GK_BUFFER(LEFT, int)};
enum { HERE = 7, THERE, LAST };
#define ADD GK_RUN(add, N, X, A)

static char said[2000]; /* all lines */

static void keep_line(void *user, gk_log_level level, const char *text) {
  (void)user;
  (void)level;
  snprintf(said + strlen(said), sizeof said - strlen(said), "%s\n", text);
}

static gk_graph *logged_graph(gk_device *device, const gk_list *list) {
  said[0] = 0;
  gk_set_log(GK_LOG_INFO, keep_line, NULL);
  gk_graph *graph = graph_on(device, list, 0);
  gk_set_log(GK_LOG_WARN, NULL, NULL);
  gk_bind_int(graph, N, 1);
  gk_bind_int(graph, A, 1);
  return graph;
}

/* Of the launch alone. */
static simgpu_counts counts_of(gk_graph *graph, int32_t label) {
  sim->mark();
  assert_ok(gk_launch(graph, label));
  const simgpu_counts counts = sim->counts();
  assert_ok(gk_wait(graph, NULL));
  return counts;
}

TEST_ON_CUDA(test_report) {
  const gk_device_info *info = gk_device_describe(device);
  for (size_t k = 0; k < info->capability_count; ++k) {
    const gk_capability *one = &info->capabilities[k];
    if (strcmp(one->construct, "DO_WHILE") == 0) {
      assert_int_equal(one->how, GK_NATIVE);
      assert_non_null(strstr(one->why, "get plain gates"));
      assert_non_null(strstr(one->why, "(P2o1)"));
      assert_non_null(strstr(one->why, "(P7)"));
      assert_null(strstr(one->why, "(P1d)")); /* that is another matter */
    }
    if (strcmp(one->construct, "CHECKPOINT") == 0) assert_non_null(strstr(one->why, "copied to the device"));
  }
}

/* A loop in a loop, ended by a yield in an IF in it, and gone on with. */
TEST_ON_CUDA(test_native) {
  static const gk_task tasks[] = {
    GK_DO_WHILE(LEFT), GK_IF(FLAG), GK_CHECKPOINT(HERE, FLAG), ADD, GK_END, GK_END, ADD, GK_DO_WHILE(LEFT),
    GK_RUN(decrease, GK_ONE, LEFT), GK_END, GK_END, ADD};
  static const gk_list list = GK_LIST(nested, tasks, slots);
  gk_graph *graph = logged_graph(device, &list);
  assert_non_null(strstr(said, "graph nested: plain gates: this driver (CUDA 13.0) doesn't do this: "));
  assert_null(strstr(said, "host"));
  int *x = int_on(device, 0), *left = int_on(device, 2), *flag = int_on(device, 1);
  gk_bind(graph, X, x);
  gk_bind(graph, LEFT, left);
  gk_bind(graph, FLAG, flag);
  const gk_status *status;
  assert_ok(gk_launch(graph, 0));
  assert_ok(gk_wait(graph, &status));
  assert_int_equal(status->yielded, HERE);
  assert_int_equal(int_at(device, x), 1);
  set_int(device, flag, 0);
  const simgpu_counts counts = counts_of(graph, HERE);
  assert_int_equal(counts.launches, 1);
  assert_int_equal(counts.waits, 0);
  assert_int_equal(int_at(device, x), 4);
  assert_true(sim->counts().conditional_nodes >= 4); /* counted by now, as that was read */
  assert_int_equal(sim->counts().dropped, 0); /* the driver had nothing to ignore */
  assert_int_equal(int_at(device, left), 0);
  gk_graph_destroy(graph);
}

/* What nobody stops or resumes in doesn't rest on anything that this driver lacks. */
TEST_ON_CUDA(test_not_concerned) {
  static const gk_task tasks[] = {ADD, GK_DO_WHILE(LEFT), ADD, GK_RUN(decrease, GK_ONE, LEFT), GK_END, ADD};
  static const gk_list list = GK_LIST(simple, tasks, slots);
  gk_graph *graph = logged_graph(device, &list);
  assert_null(strstr(said, "plain gates"));
  int *x = int_on(device, 0), *left = int_on(device, 3);
  gk_bind(graph, X, x);
  gk_bind(graph, LEFT, left);
  counts_of(graph, 0);
  assert_int_equal(int_at(device, x), 5);
  gk_graph_destroy(graph);
}

/* Only who resumes sets a node in a body; from the top each is set where it is. */
TEST_ON_CUDA(test_resume_alone) {
  static const gk_task tasks[] = {GK_IF(FLAG), ADD, GK_IF(FLAG), GK_TARGET(HERE), ADD, GK_END, GK_END, GK_END};
  static const gk_list list = GK_LIST(inner, tasks, slots);
  gk_graph *graph = logged_graph(device, &list);
  assert_non_null(strstr(said, "graph inner: plain gates: "));
  int *x = int_on(device, 0), *flag = int_on(device, 0);
  gk_bind(graph, X, x);
  gk_bind(graph, FLAG, flag);
  counts_of(graph, 0);
  assert_int_equal(int_at(device, x), 0);
  counts_of(graph, HERE);
  assert_int_equal(int_at(device, x), 1);
  gk_graph_destroy(graph);
}

static const gk_task three_tasks[] = {
  GK_TARGET(HERE), ADD, GK_END, GK_TARGET(THERE), ADD, GK_END, GK_TARGET(LAST), ADD, GK_END};
static const gk_list three = GK_LIST(three, three_tasks, slots);

TEST_ON_CUDA(test_target_by_copy) {
  gk_graph *graph = logged_graph(device, &three);
  int *x = int_on(device, 0);
  gk_bind(graph, X, x);
  counts_of(graph, 0);
  counts_of(graph, HERE); /* now the graph is there */
  assert_int_equal(int_at(device, x), 6);
  for (int again = 0; again < 2; ++again) {
    const simgpu_counts counts = counts_of(graph, THERE);
    assert_int_equal(counts.copies, !again);
    assert_int_equal(counts.pageable, 0);
    assert_int_equal(counts.waits, 0);
    assert_int_equal(sim->calls("cuGraphExecNodeSetParams"), 0);
  }
  assert_int_equal(int_at(device, x), 10);
  gk_graph_destroy(graph);
}

/* Of many launches under way each begins where it was told to. */
TEST_ON_CUDA(test_many_targets) {
  gk_graph *graph = logged_graph(device, &three);
  int *memory[16];
  for (int k = 0; k < 16; ++k) memory[k] = int_on(device, 0);
  gk_bind(graph, X, memory[0]);
  counts_of(graph, LAST);
  set_int(device, memory[0], 0);
  sim->hold(true);
  for (int k = 0; k < 16; ++k) {
    gk_bind(graph, X, memory[k]);
    assert_ok(gk_launch(graph, k % 4 ? HERE + k % 4 - 1 : 0));
  }
  sim->hold(false);
  assert_ok(gk_wait(graph, NULL));
  for (int k = 0; k < 16; ++k) assert_int_equal(int_at(device, memory[k]), k % 4 ? 4 - k % 4 : 3);
  gk_graph_destroy(graph);
}

/* A copy that fails is that launch's failure, and the next one goes where it is told to. */
TEST_ON_CUDA(test_copy_fails) {
  gk_graph *graph = logged_graph(device, &three);
  int *x = int_on(device, 0);
  gk_bind(graph, X, x);
  counts_of(graph, HERE);
  bool copied = false;
  for (uint64_t k = 1; !copied; ++k) {
    set_int(device, x, 0);
    counts_of(graph, HERE);
    assert_int_equal(int_at(device, x), 3);
    sim->mark();
    (sim->fail)(k, CUDA_ERROR_INVALID_VALUE, SIMGPU_NOW);
    gk_result result = gk_launch(graph, LAST);
    if (result == GK_OK) result = gk_wait(graph, NULL);
    copied = sim->failed() && strcmp(sim->failed(), "cuMemcpyHtoDAsync") == 0;
    if (copied) assert_says("the target of graph three");
    assert_true(!copied || result != GK_OK);
    if (!sim->failed()) fail_msg("no call copies");
    sim->mark();
  }
  set_int(device, x, 0);
  counts_of(graph, LAST);
  assert_int_equal(int_at(device, x), 1);
  gk_graph_destroy(graph);
}

int main(int count, char **words) {
  (void)count;
  with_simgpu(words);
  sim->answer_no("P1b2,P1c,P1d,P1e,P1k,P2o1,P2o2,P2o3,P2d,P2b,P4a,P6,P7"); /* before the driver is asked */
  return run_all_tests();
}
