/* A driver that answers "no" to many of the probe's questions: lists that depend on them get plain gates and run on the
 * device all the same, and the target of a launch that resumes is sent by a copy. */
#include "graphs.h"
#include "unit/support/runtime_kernels.h"

enum { X = 1, N, A, FLAG, LEFT, SLOTS };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_DEFAULT(N, int, 1), GK_DEFAULT(A, int, 1),
                                     GK_BUFFER(FLAG, int), GK_BUFFER(LEFT, int)};
enum { HERE = 7, THERE, LAST };
#define ADD GK_RUN(add, N, X, A)

static char said[2000]; /* all lines */

static void keep_line(UNUSED void *user, UNUSED gk_log_level level,
                      const char *text) {
  snprintf(said + strlen(said), sizeof said - strlen(said), "%s\n", text);
}

static gk_graph *logged_graph(gk_device *device, const gk_list *list) {
  said[0] = 0;
  gk_set_log(GK_LOG_INFO, keep_line, NULL);
  gk_graph *graph = new_graph(device, list, 0);
  gk_set_log(GK_LOG_WARN, NULL, NULL);
  return graph;
}

/* By the launch alone. */
static simgpu_counts counts_of(gk_graph *graph, int32_t label) {
  sim->mark();
  assert_ok(gk_launch(graph, label));
  const simgpu_counts counts = sim->counts();
  assert_ok(gk_wait(graph, NULL));
  return counts;
}

TEST_ON_CUDA(test_report) {
  const gk_capability *loop = capability_of(device, "DO_WHILE");
  assert_int_equal(loop->how, GK_NATIVE);
  assert_non_null(strstr(loop->why, "get plain gates"));
  assert_non_null(strstr(loop->why, "(P2o1)"));
  assert_non_null(strstr(loop->why, "(P7)"));
  assert_null(strstr(loop->why, "(P1d)")); /* resuming is another case */
  assert_non_null(strstr(capability_of(device, "CHECKPOINT")->why, "copied to the device"));
}

/* A loop in a loop, which a yield in an IF within it ends, and which is resumed. */
TEST_ON_CUDA(test_native) {
  LIST(nested, GK_DO_WHILE(LEFT), GK_IF(FLAG), GK_CHECKPOINT(HERE, FLAG), ADD, GK_END, GK_END, ADD,
       GK_DO_WHILE(LEFT), GK_RUN(decrease, GK_ONE, LEFT), GK_END, GK_END, ADD);
  gk_graph *graph = logged_graph(device, &nested);
  assert_non_null(strstr(said, "graph nested: plain gates: this driver (CUDA 13.0) doesn't do this: "));
  assert_null(strstr(said, "host"));
  int *x = int_on(device, 0), *left = int_on(device, 2), *flag = int_on(device, 1);
  BIND(graph, {X, x}, {LEFT, left}, {FLAG, flag});
  assert_int_equal(run_to_end(graph, 0)->yielded, HERE);
  ASSERT_VALUES({x, 1});
  set_int(device, flag, 0);
  const simgpu_counts counts = counts_of(graph, HERE);
  assert_int_equal(counts.launches, 1);
  assert_int_equal(counts.waits, 0);
  ASSERT_VALUES({x, 4});
  assert_true(sim->counts().conditional_nodes >= 4); /* counted by now, as that was read */
  assert_int_equal(sim->counts().dropped, 0); /* the driver had nothing to ignore */
  ASSERT_VALUES({left, 0});
}

/* A list in which no launch stops or resumes depends on nothing that this driver lacks. */
TEST_ON_CUDA(test_not_concerned) {
  LIST(simple, ADD, GK_DO_WHILE(LEFT), ADD, GK_RUN(decrease, GK_ONE, LEFT), GK_END, ADD);
  gk_graph *graph = logged_graph(device, &simple);
  assert_null(strstr(said, "plain gates"));
  int *x = int_on(device, 0);
  BIND(graph, {X, x}, {LEFT, int_on(device, 3)});
  counts_of(graph, 0);
  ASSERT_VALUES({x, 5});
}

/* Only a launch that resumes sets a node in a body. A launch from the top sets each where it is. */
TEST_ON_CUDA(test_resume_alone) {
  LIST(inner, GK_IF(FLAG), ADD, GK_IF(FLAG), GK_TARGET(HERE), ADD, GK_END, GK_END, GK_END);
  gk_graph *graph = logged_graph(device, &inner);
  assert_non_null(strstr(said, "graph inner: plain gates: "));
  int *x = int_on(device, 0);
  BIND(graph, {X, x}, {FLAG, int_on(device, 0)});
  for (int resumes = 0; resumes < 2; ++resumes) {
    counts_of(graph, resumes ? HERE : 0);
    ASSERT_VALUES({x, resumes});
  }
}

LIST(three, GK_TARGET(HERE), ADD, GK_END, GK_TARGET(THERE), ADD, GK_END, GK_TARGET(LAST), ADD, GK_END);

TEST_ON_CUDA(test_target_by_copy) {
  gk_graph *graph = logged_graph(device, &three);
  int *x = int_on(device, 0);
  BIND(graph, {X, x});
  counts_of(graph, 0);
  counts_of(graph, HERE); /* now the graph exists */
  ASSERT_VALUES({x, 6});
  for (int again = 0; again < 2; ++again) {
    const simgpu_counts counts = counts_of(graph, THERE);
    assert_int_equal(counts.copies, !again);
    assert_int_equal(counts.pageable, 0);
    assert_int_equal(counts.waits, 0);
    assert_int_equal(sim->calls("cuGraphExecNodeSetParams"), 0);
  }
  ASSERT_VALUES({x, 10});
}

/* Of many launches under way each begins at its own target. */
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
  for (int k = 0; k < 16; ++k) ASSERT_VALUES({memory[k], k % 4 ? 4 - k % 4 : 3});
}

/* A copy that fails makes that launch fail, and the next one begins at its own target. */
TEST_ON_CUDA(test_copy_fails) {
  gk_graph *graph = logged_graph(device, &three);
  int *x = int_on(device, 0);
  BIND(graph, {X, x});
  counts_of(graph, HERE);
  const char *failed = "";
  for (uint64_t k = 1; strcmp(failed, "cuMemcpyHtoDAsync") != 0; ++k) {
    set_int(device, x, 0);
    counts_of(graph, HERE);
    ASSERT_VALUES({x, 3});
    fail_call(k, CUDA_ERROR_INVALID_VALUE);
    const gk_result result = run_on_stream(graph, LAST, NULL);
    failed = failed_call();
    if (!failed) fail_msg("no call copies");
    if (strcmp(failed, "cuMemcpyHtoDAsync") != 0) continue;
    assert_says("the target of graph three");
    assert_true(result != GK_OK);
  }
  set_int(device, x, 0);
  counts_of(graph, LAST);
  ASSERT_VALUES({x, 1});
}

int main(UNUSED int count, char **words) {
  with_simgpu(words);
  sim->answer_no("P1b2,P1c,P1d,P1e,P1k,P2o1,P2o2,P2o3,P2d,P2b,P4a,P6,P7"); /* before the driver is asked */
  return run_all_tests();
}
