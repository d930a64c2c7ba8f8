/* Ranges and marks for profilers: their names; they are nested, and end on their threads after any failure; without a
 * tool there are none. */
#include "unit/support/elsewhere.h"
#include "unit/support/runtime_leaks.h"
#include "unit/support/trace.h"
#include "unit/support/runtime_kernels.h"

enum { X = 1, A, N, FLAG, SUM };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_DEFAULT(A, int, 1), GK_BUFFER(N, int), GK_BUFFER(FLAG, int),
                                     GK_OWN(SUM, int, 1)};
LIST(straight, GK_RUN(add, GK_ONE, X, A), GK_RUN(add, GK_ONE, X, A));

/* ---- without a tool, each in a process of its own ---------------------------------------------------------------- */

static int one_launch(void) {
  gk_device *device = NULL;
  gk_graph *graph = NULL;
  int x[1] = {0};
  bool failed = gk_device_open(&(gk_device_desc){.backend = "openmp", .threads = 1}, &device) ||
                gk_graph_create(device, &straight, 0, &graph) || gk_bind(graph, X, x) || gk_launch(graph, 0) ||
                gk_wait(graph, NULL);
  gk_graph_destroy(graph);
  gk_device_close(device);
  return failed || x[0] != 2;
}

static int ask(void) {
  int looked = 0;
  const int code = one_launch();
  gki_trace_begin((uint64_t)++looked, "never");
  gki_trace_mark((uint64_t)++looked, "never");
  gki_trace_end();
  const char *why;
  const bool built = gki_trace_describe(&why);
  printf("%s, %d names looked at: %s\n", gki_trace_enabled() ? "heard" : "not heard", looked,
         built ? why : "not built in");
  return code;
}

static int ask_without(void) {
  unsetenv("NVTX_INJECTION64_PATH");
  return ask();
}

#ifdef GK_NVTX
static const elsewhere_word words[] = {{"ask", ask}, {"ask without", ask_without}};

TEST(nobody_is_no_trouble) {
  static const char none[] = "not heard, 0 names looked at: ranges and marks for a tool that";
  const elsewhere_case cases[] = {
      {NULL, {NULL}, "ask", {"heard, 2 names looked at: a tool listens"}},
      {NULL, {NULL}, "ask without", {none}},
      {NULL, {"NVTX_INJECTION64_PATH=/nowhere/tool.so"}, "ask", {none}},
      {NULL, {"NVTX_INJECTION64_PATH=libm.so.6"}, "ask", {none}}, /* no tool at all */
      {NULL, {"TRACE_TOOL=refuses"}, "ask", {none}},
      {NULL, {"TRACE_TOOL=deaf"}, "ask", {none}},
  };
  ELSEWHERE(cases);
}

/* ---- with one ---------------------------------------------------------------------------------------------------- */

enum { HERE = 10, THERE };

LIST(loop, GK_RUN(add, GK_ONE, X, A), GK_DO_WHILE(N), GK_RUN(add, GK_ONE, X, A), GK_RUN(decrease, GK_ONE, N), GK_END);
LIST(pausing, GK_CHECKPOINT(HERE, FLAG), GK_RUN(add, GK_ONE, X, A), GK_END);
LIST(endless, GK_WHILE(FLAG), GK_RUN(add, GK_ONE, X, A), GK_END);

static int setup(void **state) {
  const int code = setup_device(state);
  find_trace_tool();
  tool->forget();
  return code;
}

static int teardown(void **state) {
  const int code = teardown_device(state);
  return code || tool->open() || tool->wrong()[0] ? -1 : 0;
}

#define TEST_TOLD(backends, test) DEVICE_TEST_ON(backends, test, setup, teardown)

TEST_TOLD(ALL_BACKENDS, opening) {
  gk_device *second = NULL;
  const char *backend = gk_device_describe(device)->backend;
  char wanted[200];
  assert_string_equal(tool->domain(), "gk");
  assert_ok(gk_device_open(&(gk_device_desc){.backend = backend}, &second));
  snprintf(wanted, sizeof wanted, "open %s 0{}", backend);
  assert_said(0, wanted);
  gk_device_close(second);
  tool->forget();
  assert_fails(GK_ERROR_NO_DEVICE, "", gk_device_open(&(gk_device_desc){.backend = backend, .ordinal = 77}, &second));
  snprintf(wanted, sizeof wanted, "open %s 77{}", backend);
  assert_said(0, wanted);
}

TEST_TOLD(FAKE_BACKENDS " openmp", creating) {
  const bool loads = !is_of(device, "openmp");
  graph_on(device, &straight, 0);
  char wanted[400];
  static const char format[] = "create straight{check and plan{}%slower{}"
                               "slots{resize SUM of straight[1]{allocate[4]{zero[4]{}}}}}";
  snprintf(wanted, sizeof wanted, format, loads ? "kernel add{}" : "");
  assert_said(0, wanted);
  tool->forget();
  graph_on(device, &straight, 0); /* its kernel is there */
  snprintf(wanted, sizeof wanted, format, "");
  assert_said(0, wanted);
}

TEST_TOLD(FAKE_BACKENDS " openmp", moving) {
  gk_graph *graph = graph_on(device, &straight, 0);
  int numbers[3] = {1, 2, 3};
  tool->forget();
  int *memory = ints_on(device, numbers, 3);
  assert_ok(gk_download(device, numbers, memory, 8));
  assert_ok(gk_copy(device, memory + 1, memory, 4));
  gk_free(device, memory);
  assert_said(0, "allocate[12]{zero[12]{}}upload[12]{}download[8]{}copy[4]{}free{}");
  tool->forget();
  assert_ok(gk_resize(graph, SUM, 5));
  assert_said(0, "resize SUM of straight[5]{allocate[20]{zero[20]{}}copy[4]{}free{}}");
  assert_balanced();
}

/* The caller's thread reports its launches and waits, the device's own thread what runs there. */
TEST_TOLD(ALL_BACKENDS, launching) {
  int *x = int_on(device, 0);
  gk_graph *graph = GRAPH_ON(device, &straight, 0, {X, x});
  for (int k = 1; k < 3; ++k) {
    const bool native = is_of(device, "fake_native");
    const bool batched = is_of(device, "fake_batched"), ahead = is_of(device, "test_device");
    char caller[200], worker[200];
    tool->forget();
    gki_trace_mark(0, "first"); /* this thread is number 0 */
    run_to_end(graph, 0);
    snprintf(caller, sizeof caller, native ? "!first;launch straight[%d]{start straight[%d]{}}wait for straight[%d]{}"
                                           : "!first;launch straight[%d]{}wait for straight[%d]{}", k, k, k);
    snprintf(worker, sizeof worker, batched ? "run straight[%d]{tasks 0 (add) to 1 (add){}wait for the device{}}"
                                    : ahead ? "run straight[%d]{enqueue runs[1]{}wait for the device{}}"
                                            : "run straight[%d]{}", k);
    assert_said(0, caller);
    assert_said(1, native ? "" : worker);
    assert_balanced();
  }
}

TEST_TOLD(ALL_BACKENDS, yielding) {
  int *x = int_on(device, 0), *flag = int_on(device, 1);
  gk_graph *graph = GRAPH_ON(device, &pausing, 0, {X, x}, {FLAG, flag});
  tool->forget();
  run_to_end(graph, 0);
  assert_some_said("!pausing yielded at HERE[1];}");
  set_int(device, flag, 0);
  run_to_end(graph, HERE);
  assert_some_said("launch pausing at HERE[2]{");
  assert_some_said("wait for pausing[2]{}");
  assert_false(some_said("HERE[2];"));
  assert_balanced();
}

TEST_TOLD(ALL_BACKENDS, cancelling) {
  int *x = int_on(device, 0), *flag = int_on(device, 1);
  gk_graph *graph = GRAPH_ON(device, &endless, GK_CANCELLABLE, {X, x}, {FLAG, flag});
  tool->forget();
  assert_ok(gk_launch(graph, 0));
  assert_ok(gk_cancel(graph));
  assert_ok(gk_wait(graph, NULL));
  assert_some_said("!cancel endless;");
  assert_some_said("!endless was cancelled[1];}");
  tool->forget();
  assert_ok(gk_launch(graph, 0));
  gk_graph_destroy(graph); /* cancels and waits */
  assert_some_said("wait for endless[2]{");
  assert_some_said("!endless was cancelled[2];}");
  assert_balanced();
}

/* On a busy machine a cancel may come late, when the loop has already reported much. */
TEST_TOLD("openmp", endless_marks_keep_the_last) {
  tool->forget();
  for (uint64_t k = 0; k < 20000; ++k) gki_trace_mark(k, "again");
  assert_some_said("!again[19998];!again[19999];");
  assert_false(some_said("!again;"));
}

/* ---- what fails -------------------------------------------------------------------------------------------------- */

TEST_TOLD(ALL_BACKENDS, refused_launches) {
  gk_graph *graph = graph_on(device, &pausing, 0);
  tool->forget();
  assert_invalid("is not bound", gk_launch(graph, 0));
  assert_invalid("no checkpoint", gk_launch(graph, THERE));
  assert_invalid("not launched yet", gk_wait(graph, NULL));
  assert_invalid("", gk_resize(graph, A, 3));
  assert_fails(GK_ERROR_MEMORY, "", gk_resize(graph, X, SIZE_MAX / 2));
  assert_said(0, "launch pausing[1]{}launch pausing[1]{}resize X of pausing[9223372036854775807]{}");
  assert_balanced();
  gk_graph_destroy(graph);
  static const gk_list wrong = {.abi = GK_ABI, .name = "wrong", .tasks = loop_tasks, .task_count = 2,
                                .slots = slots, .slot_count = GK_COUNT(slots)};
  static const gk_list other = {.abi = GK_ABI + 1};
  tool->forget();
  assert_invalid("", gk_graph_create(device, &wrong, 0, &graph));
  assert_invalid("", gk_graph_create(device, &other, 0, &graph));
  assert_invalid("", gk_graph_create(device, NULL, 0, &graph));
  assert_said(0, "create wrong{check and plan{}}create what is no list{check and plan{}}"
                 "create what is no list{check and plan{}}");
  assert_balanced();
}

/* Each call of the backend in turn fails. */
TEST_TOLD(FAKE_BACKENDS, failing_backend) {
  int *x = int_on(device, 0), *n = int_on(device, 0);
  bool failed_once = false;
  for (unsigned k = 1;; ++k) {
    gk_graph *graph = NULL;
    set_int(device, n, 2);
    tool->forget();
    fake_fail(FAKE_ENTRIES, k, GK_ERROR_DEVICE, false);
    gk_result result = gk_graph_create(device, &loop, 0, &graph);
    if (result == GK_OK) {
      BIND(graph, {X, x}, {N, n});
      result = gk_resize(graph, SUM, k + 1);
      if (result == GK_OK) result = gk_launch(graph, 0);
      if (result == GK_OK) result = gk_wait(graph, NULL);
      if (result != GK_OK && some_said("launch loop[1]")) {
        failed_once = true;
        assert_some_said("!loop failed[1];");
      }
    }
    const bool over = fake_failures_left() != 0;
    fake_fail(FAKE_ENTRIES, 0, GK_OK, false);
    assert_balanced();
    gk_graph_destroy(graph);
    assert_balanced();
    if (!over) continue;
    assert_ok(result);
    break;
  }
  assert_true(failed_once);
}

/* Each piece of gk's own memory in turn isn't there; the last round needs no more than there is. */
TEST_ON_EACH("openmp", no_memory, setup, teardown) {
  gk_device_close(*state);
  assert_int_equal(begin_counted(NULL), 0);
  bool whole = false;
  for (int k = 1; !whole; ++k) {
    gk_device *device = NULL;
    gk_graph *graph = NULL;
    fail_own_memory(k);
    gk_result result = gk_device_open(&(gk_device_desc){.backend = "openmp", .threads = 1}, &device);
    if (result == GK_OK) result = gk_graph_create(device, &straight, 0, &graph);
    if (result == GK_OK) result = gk_resize(graph, X, 3);
    if (result == GK_OK) result = gk_launch(graph, 0);
    if (result == GK_OK) result = gk_wait(graph, NULL);
    whole = !own_memory_failed();
    assert_balanced();
    gk_graph_destroy(graph);
    gk_device_close(device);
    tool->forget();
  }
  assert_int_equal(end_counted(NULL), 0);
  *state = open_named("openmp");
}

/* ---- each task by itself, and several threads -------------------------------------------------------------------- */

TEST_TOLD("openmp fake_batched", isolated) {
  int *x = int_on(device, 0), *n = int_on(device, 2);
  gk_graph *graph = GRAPH_ON(device, &loop, GK_ISOLATE, {X, x}, {N, n});
  tool->forget();
  run_to_end(graph, 0);
  assert_some_said(is_of(device, "openmp") ? "run loop[1]{task 0 (add){}task 2 (add){}task 3 (decrease){}"
                                          "task 2 (add){}task 3 (decrease){}}"
                                        : "run loop[1]{task 0 (add){}task 2 (add){}task 3 (decrease){}"
                                          "flag of task 1 (N){}task 2 (add){}task 3 (decrease){}flag of task 1 (N){}"
                                          "wait for the device{}}");
  assert_int_equal(int_at(device, x), 3);
  assert_balanced();
}

enum { THREADS = 6, ROUNDS = 30 };

static void *launch_often(void *at) {
  gk_device *device = at;
  gk_graph *graph = NULL;
  int *x = gk_alloc(device, sizeof *x, GK_DEVICE_MEMORY);
  if (!x || gk_graph_create(device, &straight, 0, &graph) != GK_OK) return NULL;
  bool good = gk_bind(graph, X, x) == GK_OK;
  for (int k = 0; k < ROUNDS && good; ++k)
    good = gk_launch(graph, 0) == GK_OK && gk_launch(graph, 0) == GK_OK && gk_wait(graph, NULL) == GK_OK;
  gk_graph_destroy(graph);
  gk_free(device, x);
  return good ? device : NULL;
}

/* Jobs are done on several threads, by the first one that is free: each thread's ranges are balanced all the same. */
TEST_TOLD(ALL_BACKENDS, several_threads) {
  pthread_t threads[THREADS];
  for (int k = 0; k < THREADS; ++k) threads[k] = start_thread(launch_often, device);
  for (int k = 0; k < THREADS; ++k) assert_non_null(join_thread(threads[k]));
  assert_some_said("launch straight[60]{");
  assert_balanced();
}

TEST_TOLD("openmp", facts) {
  const char *why;
  assert_true(gki_trace_describe(&why));
  assert_non_null(strstr(why, "a tool listens"));
}

int main(int count, char **arguments) {
  int code;
  if (elsewhere_is_here(count, arguments, words, GK_COUNT(words), &code)) return code;
  with_trace_tool();
  return run_all_tests();
}
#else
/* It builds, runs, and is quiet; the rest can't be seen here. */
TEST(is_left_out) {
  assert_int_equal(ask_without(), 0);
  assert_false(gki_trace_enabled());
}

int main(void) { return run_all_tests(); }
#endif
