#include "unit/support/runtime.h"
#include "unit/support/runtime_kernels.h"
#include "unit/support/work.h"

enum { X = 1, A, N, OWNED, FLAG };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_DEFAULT(A, int, 1), GK_BUFFER(N, int), GK_OWN(OWNED, int, 3),
                                     GK_BUFFER(FLAG, int)};
LIST(list, GK_RUN(add, GK_ONE, X, A), GK_WHILE(N), GK_RUN(decrease, GK_ONE, N), GK_END, GK_CHECKPOINT(7, FLAG),
           GK_RUN(add, GK_ONE, X, A), GK_END, GK_RUN(add, GK_ONE, OWNED, A));

TEST_ON(ALL_BACKENDS, bad_arguments_are_refused) {
  gk_graph *graph = (gk_graph *)state;
  assert_invalid("nowhere to put the graph", gk_graph_create(device, &list, 0, NULL));
  assert_invalid("there is no device", gk_graph_create(NULL, &list, 0, &graph));
  assert_null(graph);
  assert_invalid("bits 0x30 are unknown", gk_graph_create(device, &list, 0x30 | GK_ISOLATE, &graph));
  assert_invalid("NULL", gk_graph_create(device, NULL, 0, &graph));
  LIST(unbalanced, GK_WHILE(N));
  graph = (gk_graph *)state;
  assert_invalid("never closed", gk_graph_create(device, &unbalanced, 0, &graph));
  assert_null(graph);
  gk_graph_destroy(NULL);
}

TEST_ON(ALL_BACKENDS, create_says_nothing_when_it_works) {
  assert_invalid("there is no graph", gk_launch(NULL, 0));
  graph_on(device, &list, 0);
  assert_string_equal(gk_error(), "gk_launch: there is no graph (NULL)"); /* still the last failure */
}

TEST_ON(FAKE_BACKENDS, kernels_are_made_ready_once_per_device) {
  gk_graph *graphs[5];
  for (int k = 0; k < 5; ++k) graphs[k] = graph_on(device, &list, k % 2 ? GK_ISOLATE : 0);
  assert_int_equal(fake_calls(FAKE_LOAD), 2);
  for (int k = 0; k < 5; ++k) gk_graph_destroy(graphs[k]);
  assert_int_equal(fake_calls(FAKE_UNLOAD), 0); /* they are the device's */
}

/* More kernels than the table begins with; each is found again. */
TEST_ON(FAKE_BACKENDS, many_kernels) {
  enum { KERNELS = 100 };
  static gk_kernel kernels[KERNELS];
  static gk_task many[KERNELS];
  for (int k = 0; k < KERNELS; ++k) {
    kernels[k] = add;
    many[k] = (gk_task)GK_RUN(kernels[0], GK_ONE, X, A);
    many[k].kernel = &kernels[k];
  }
  const gk_list lots = GK_LIST(lots, many, slots);
  int *x = int_on(device, 0);
  gk_graph *graph = GRAPH_ON(device, &lots, 0, {X, x});
  graph_on(device, &lots, 0);
  assert_int_equal(fake_calls(FAKE_LOAD), KERNELS);
  run_to_end(graph, 0);
  assert_int_equal(int_at(device, x), KERNELS);
}

/* At any failing call into the backend while a graph is made: its code and message, nothing left behind, and the next
 * try works. */
TEST_ON(FAKE_BACKENDS, every_failure_while_creating) {
  unsigned k = 1;
  for (bool failed = true; failed; ++k) {
    gk_device *other = open_named(gk_device_describe(device)->backend); /* that has no kernels yet */
    gk_graph *graph = (gk_graph *)state;
    fake_fail(FAKE_ENTRIES, k, GK_ERROR_DEVICE, k % 2);
    gk_result result = gk_graph_create(other, &list, 0, &graph);
    failed = fake_failures_left() == 0;
    fake_fail(FAKE_ENTRIES, 0, GK_OK, false);
    if (failed) {
      assert_int_equal(result, GK_ERROR_DEVICE);
      assert_null(graph);
      if (k % 2 == 0) assert_says("failed on request");
      if (!gk_error()[0]) fail_msg("failure %u has no message", k);
      result = gk_graph_create(other, &list, 0, &graph);
    }
    assert_ok(result);
    gk_graph_destroy(graph);
    gk_device_close(other);
    assert_string_equal(fake_broken(), "");
    assert_int_equal(fake_leaks(), 1); /* the other device */
  }
  /* load twice, lower, alloc, copy if it is far; and the one without */
  assert_int_equal(k, is_of(device, "fake_batched") ? 7 : 6);
}

TEST_ON(FAKE_BACKENDS, kernel_that_does_not_load_is_named) {
  gk_graph *graph;
  fake_fail(FAKE_LOAD, 2, GK_ERROR_COMPILE, true);
  assert_fails(GK_ERROR_COMPILE, "task 2 (decrease): backend ", gk_graph_create(device, &list, 0, &graph));
  assert_says("could not make the kernel ready");
  fake_fail(FAKE_LOWER, 1, GK_ERROR_UNSUPPORTED, true);
  assert_fails(GK_ERROR_UNSUPPORTED, "could not lower graph list", gk_graph_create(device, &list, 0, &graph));
  fake_fail(FAKE_LOWER, 1, GK_ERROR_UNSUPPORTED, false);
  assert_fails(GK_ERROR_UNSUPPORTED, "fake: lower failed", gk_graph_create(device, &list, 0, &graph));
}

/* After its device closed, a graph fails politely and can be destroyed. */
TEST_ON_EACH(ALL_BACKENDS, device_closed_before_its_graphs, begin_counted_backends, end_counted_backends) {
  gk_device *device = open_named(*state);
  gk_graph *graph = GRAPH_ON(device, &list, GK_CANCELLABLE, {X, int_on(device, 1)}, {N, int_on(device, 3)},
                             {FLAG, int_on(device, 0)}), *idle = graph_on(device, &list, 0);
  assert_ok(gk_launch(graph, 0)); /* close waits for it */
  close_fake(device);
  assert_graph_calls_fail(graph, GK_ERROR_DEVICE, "the device of graph list was closed; destroy the graph");
  assert_fails(GK_ERROR_DEVICE, "closed", gk_resize(idle, OWNED, 5));
  assert_ok(gk_cancel(graph));
  assert_fails(GK_ERROR_BUSY, "device", gk_set_allocator(NULL)); /* they hold memory of this one */
  gk_graph_destroy(graph);
  gk_graph_destroy(idle);
}

TEST_ON(FAKE_BACKENDS, dumps_have_what_the_backend_made) {
  gk_graph *graph = graph_on(device, &list, 0);
  char *text = gk_dump(NULL, graph, "text"), *json = gk_dump(NULL, graph, "json"), *dot = gk_dump(NULL, graph, "dot");
  char *plan = gk_dump(&list, NULL, "text");
  assert_non_null(plan);
  if (!text || !strstr(text, plan)) fail_msg("%s", text ? text : gk_error());
  assert_non_null(strstr(text, "on fake_"));
  assert_non_null(strstr(text, " runs\n"));
  assert_int_equal(strncmp(json, "{\"plan\": {", 10), 0);
  assert_non_null(strstr(json, "\"lowered\": {\"runs\": "));
  assert_int_equal(strncmp(dot, "digraph", 7), 0);
  gk_free_text(text);
  gk_free_text(json);
  gk_free_text(dot);
  gk_free_text(plan);
  gk_free_text(NULL);
}

TEST_ON(ALL_BACKENDS, bad_dump_is_refused) {
  gk_graph *graph = graph_on(device, &list, 0);
  assert_gives_null("there is no format \"yaml\"; there are text, dot, json", gk_dump(&list, NULL, "yaml"));
  assert_gives_null("(NULL)", gk_dump(&list, NULL, NULL));
  assert_gives_null("give a list or a graph", gk_dump(NULL, NULL, "text"));
  assert_gives_null("give a list or a graph", gk_dump(&list, graph, "text"));
  LIST(wrong, GK_END);
  assert_gives_null("task 0", gk_dump(&wrong, NULL, "dot"));
}

TEST_ON(ALL_BACKENDS, empty_list_is_a_graph) {
  const gk_list nothing = {GK_ABI, "nothing", list_tasks, 0, NULL, 0};
  const gk_status *status = run_to_end(graph_on(device, &nothing, 0), 0);
  assert_int_equal(status->state, GK_FINISHED);
  assert_int_equal(status->applied, GK_UNCHANGED);
  assert_int_equal(status->loop_count + status->checkpoint_count, 0);
}

static void *make_some(void *at) {
  for (int k = 0; k < 20; ++k) {
    gk_graph *graph = graph_on(at, &list, 0);
    assert_ok(gk_resize(graph, OWNED, (size_t)k));
    gk_graph_destroy(graph);
  }
  return NULL;
}

TEST_ON(ALL_BACKENDS, threads_create_at_once) {
  run_threads(make_some, device, 4, 0);
  if (is_fake(device)) assert_int_equal(fake_calls(FAKE_LOAD), 2);
}

TEST_ON(ALL_BACKENDS, graphs_come_and_go) {
  int *x = int_on(device, 0), *n = int_on(device, 0), *flag = int_on(device, 0);
  gk_graph *graphs[8] = {0};
  for (int k = 0; k < 100; ++k) {
    gk_graph **graph = &graphs[k * 5 % 8];
    gk_graph_destroy(*graph);
    *graph = GRAPH_ON(device, &list, 0, {X, x}, {N, n}, {FLAG, flag});
    assert_ok(gk_launch(*graph, 0));
  }
  for (int k = 0; k < 8; ++k) {
    assert_ok(gk_wait(graphs[k], NULL));
    if (k % 2) gk_graph_destroy(graphs[k]); /* in any order */
  }
  for (int k = 8; k-- > 0;)
    if (k % 2 == 0) gk_graph_destroy(graphs[k]);
  assert_int_equal(int_at(device, x), 200);
}

/* In the order in which they were made, so that a list of a device's graphs would have the oldest last. */
static double work_to_end(gk_device *device, size_t count) {
  gk_graph **graphs = calloc(count, sizeof(gk_graph *));
  for (size_t k = 0; k < count; ++k) graphs[k] = graph_on(device, &list, 0);
  const uint64_t before = work_done;
  for (size_t k = 0; k < count; ++k) gk_graph_destroy(graphs[k]);
  const uint64_t work = work_done - before;
  free(graphs);
  assert_true(work >= count);
  return (double)work / (double)count;
}

TEST_ON("fake_native", ends_are_alike_however_many_there_are) {
  const double few = work_to_end(device, 20), many = work_to_end(device, 400);
  print_message("%.1f basic blocks of create.c for the end of each of 400 graphs, %.1f of 20\n", many, few);
  assert_true(many < 1.5 * few);
}

static gk_result note_state(void *at, void *data) { return *(void **)data = at, GK_OK; }
static gk_result refuse_state(void *at, void *data) {
  (void)at, (void)data;
  return gk_fail(GK_ERROR_UNSUPPORTED, "call: not this graph");
}
static gk_result refuse_lower(void *at, void *graph, const gk_plan *plan, void *const *code, gk_mode *mode,
                              void *data) {
  (void)at, (void)graph, (void)plan, (void)code, (void)mode, (void)data;
  fail();
  return GK_OK;
}
static gk_result refuse_arm(void *at, const gk_launch_args *launch, void *data) {
  (void)at, (void)launch, (void)data;
  fail();
  return GK_OK;
}
static gk_result refuse_disarm(void *at, uint64_t over, uint64_t *launched) {
  (void)at, (void)over, (void)launched;
  fail();
  return GK_OK;
}

TEST_ON(ALL_BACKENDS, direct_access_is_for_the_backends_own) {
  const char *own = gk_device_describe(device)->backend;
  gk_graph *graph = graph_on(device, &list, 0), *part = NULL;
  void *found = NULL;
  const gk_lower_into into = {.lower = refuse_lower, .arm = "arm"};
  assert_ok(gk_device_state(device, own, "call", &found));
  assert_non_null(found);
  assert_invalid("call: there is no device", gk_device_state(NULL, own, "call", &found));
  assert_null(found);
  assert_invalid("; open one of backend other", gk_device_state(device, "other", "call", &found));
  assert_ok(gk_graph_state(graph, own, "call", 7, note_state, &found));
  assert_non_null(found);
  assert_invalid("call: there is no graph", gk_graph_state(NULL, own, "call", 0, note_state, &found));
  assert_invalid("call: graph list has no checkpoint or YIELD with label 8",
                 gk_graph_state(graph, own, "call", 8, refuse_state, NULL));
  assert_invalid("give one of a device of backend other",
                 gk_graph_state(graph, "other", "call", 0, refuse_state, NULL));
  assert_fails(GK_ERROR_UNSUPPORTED, "call: not this graph",
               gk_graph_state(graph, own, "call", 0, refuse_state, NULL));
  assert_invalid("NULL", gk_graph_create_into(device, NULL, 0, &into, &part));
  assert_null(part);
  assert_invalid("give one of a device of backend other", gk_graph_arm(graph, "other", "call", 0, refuse_arm, NULL));
  assert_invalid("call: graph list is one of gk_graph_create, which isn't armed",
                 gk_graph_arm(graph, own, "call", 0, refuse_arm, NULL));
  assert_invalid("which isn't armed", gk_graph_disarm(graph, own, "call", refuse_disarm));
}

int main(void) { return run_all_tests(); }
