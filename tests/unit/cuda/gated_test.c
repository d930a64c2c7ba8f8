/* Graphs that the host gates, on CUDA: the cost of a launch; tasks of a run keep their order, and sections have none; a
 * failed call of the driver leaves nothing behind. OLD: on a driver for that version, which has no conditional nodes
 * and takes none of the images; else with GK_HOST_GATED. */
#include "unit/support/await.h"
#include "graphs.h"
#include "lists.h"

#ifdef OLD
enum { IS_OLD = 1, BITS = 0 };
#define VERSION OLD
#else
enum { IS_OLD = 0, BITS = GK_HOST_GATED };
#define VERSION "13.0"
#endif

/* A launch from its beginning to its end. The number of questions whether it is done is open. */
static simgpu_counts counts_of_launch(gk_graph *graph) {
  sim->mark();
  run_to_end(graph, 0);
  simgpu_counts counts = sim->counts();
  counts.calls -= sim->calls("cuEventQuery") + sim->calls("cuEventSynchronize");
  return counts;
}

/* The same for a launch that takes no memory, creates nothing and doesn't wait for the stream. */
static simgpu_counts counts_of_light_launch(gk_graph *graph) {
  static const char *const absent[] = {"cuStreamSynchronize", "cuGraphInstantiateWithFlags",
                                       "cuGraphInstantiateWithParams", "cuGraphAddKernelNode", "cuStreamCreate",
                                       "cuEventCreate"};
  const simgpu_counts counts = counts_of_launch(graph);
  assert_int_equal(counts.memory, 0);
  assert_int_equal(counts.pageable, 0);
  for (size_t k = 0; k < GK_COUNT(absent); ++k)
    if (sim->calls(absent[k])) fail_msg("the launch called %s", absent[k]);
  return counts;
}

static gk_graph *straight_graph(gk_device *device, uint32_t count) {
  gk_task *tasks = calloc(count, sizeof *tasks);
  for (uint32_t k = 0; k < count; ++k) tasks[k] = (gk_task)GK_RUN(add, N, X, A);
  const gk_list list = {GK_ABI, "straight", tasks, count, slots, GK_COUNT(slots)};
  gk_graph *graph = new_graph(device, &list, GK_HOST_GATED);
  free(tasks);
  return graph;
}

#ifdef OLD
/* Neither an image nor a compiler: everything except COPY and FILL works. First: a compiler that was found is kept. */
TEST(test_no_transfers) {
  set_nvrtc("none");
  LIST(copies, GK_COPY(X, Y, GK_ONE));
  LIST(calls, GK_CALL(do_nothing, 0));
  gk_device *device = open_named("cuda");
  assert_int_equal(capability_of(device, "KERNEL")->how, GK_REFUSED);
  assert_non_null(strstr(capability_of(device, "KERNEL")->why, "NVRTC"));
  assert_int_equal(capability_of(device, "COPY")->how, GK_REFUSED);
  assert_int_equal(capability_of(device, "FILL")->how, GK_REFUSED);
  gk_graph *graph = NULL;
  assert_fails(GK_ERROR_UNSUPPORTED, "task 0 (X = Y): COPY and FILL", gk_graph_create(device, &copies, 0, &graph));
  assert_null(graph);
  run_to_end(new_graph(device, &calls, 0), 0);
  discard_all();
  gk_device_close(device);
  set_nvrtc("13.0,12.8,11.4");
}
#endif

TEST_ON_CUDA(test_straight_is_one_launch) {
  for (int k = 0; k < 2; ++k) {
    const int count = k ? 500 : 2;
    int *x = int_on(device, 0), *y = int_on(device, 0);
    gk_graph *graph = straight_graph(device, (uint32_t)count);
    BIND(graph, {X, x});
    run_to_end(graph, 0);
    simgpu_counts counts = counts_of_light_launch(graph);
    assert_int_equal(sim->calls("cuGraphLaunch"), 1);
    assert_int_equal(sim->calls("cuEventRecord"), 1);
    assert_int_equal(counts.copies, 0);
    assert_int_equal(counts.calls, 10); /* the context comes and goes three times, and for the wait the mode */
    BIND(graph, {X, y});
    BIND_INTS(graph, {A, 3});
    counts = counts_of_light_launch(graph);
    assert_int_equal(sim->calls("cuMemcpyHtoDAsync"), 1);
    assert_int_equal(counts.copies, 1);
    assert_int_equal(counts.calls, 11);
    ASSERT_VALUES({x, 2 * count}, {y, 3 * count});
  }
}

/* Without anything to decide there is one graph for all of it, whatever the driver, and a launch waits for nothing. */
TEST_ON_CUDA(test_straight_is_native) {
  LIST(list, GK_RUN(add, N, X, A), GK_PARALLEL, GK_SECTION, GK_COPY(Y, X, GK_ONE), GK_END, GK_SECTION,
       GK_RUN(decrease, GK_ONE, LEFT), GK_END, GK_END);
  int *x = int_on(device, 1), *y = int_on(device, 0);
  gk_graph *graph = NEW_GRAPH(device, &list, 0, {X, x}, {Y, y}, {LEFT, int_on(device, 0)});
  CUgraphExec exec;
  assert_ok(gk_cuda_graph(graph, 0, NULL, &exec));
  run_to_end(graph, 0);
  sim->mark();
  assert_ok(gk_launch(graph, 0));
  assert_int_equal(sim->counts().waits, 0);
  assert_ok(gk_wait(graph, NULL));
  ASSERT_VALUES({x, 3}, {y, 3});
}

/* With GK_HOST_GATED flags in the device's memory cost a copy each; the host reads those in page-locked memory. */
TEST_ON_CUDA(test_flags) {
  LIST(list, GK_DO_WHILE(LEFT), GK_CHECKPOINT(HERE, FLAG), GK_RUN(add, N, X, A), GK_RUN(add, N, X, A), GK_END,
       GK_RUN(decrease, GK_ONE, LEFT), GK_END);
  int *x = int_on(device, 0), *left = int_on(device, 3), *pages = gk_alloc(device, 2 * sizeof *pages, GK_HOST_MEMORY);
  gk_graph *graph = NEW_GRAPH(device, &list, GK_HOST_GATED, {X, x}, {LEFT, left}, {FLAG, int_on(device, 0)});
  run_to_end(graph, 0);
  set_int(device, left, 4);
  simgpu_counts counts = counts_of_light_launch(graph);
  assert_int_equal(sim->calls("cuGraphLaunch"), 8);
  assert_int_equal(sim->calls("cuMemcpyDtoHAsync"), 8);
  assert_int_equal(sim->calls("cuEventRecord"), 8); /* no mark at the end: no task follows the last flag */
  assert_int_equal(counts.copies, 8);
  BIND(graph, {LEFT, &pages[0]}, {FLAG, &pages[1]});
  pages[0] = 3;
  run_to_end(graph, 0);
  assert_int_equal(pages[0], 0);
  pages[0] = 3;
  counts = counts_of_light_launch(graph);
  assert_int_equal(counts.copies, 0);
  assert_int_equal(sim->calls("cuGraphLaunch"), 6);
  pages[0] = 5;
  pages[1] = 1;
  assert_int_equal(run_to_end(graph, 0)->yielded, HERE);
  pages[1] = 0;
  assert_int_equal(run_to_end(graph, HERE)->state, GK_FINISHED);
  ASSERT_VALUES({x, 2 * (3 + 4 + 3 + 3 + 1 + 5)});
}

#ifdef OLD
#define SILENT(label) GK_CHECKPOINT(label, FLAG), GK_RUN(add, N, X, A), GK_END

/* The device reads flags itself, so a launch costs as many waits as guesses were wrong. */
TEST_ON_CUDA(test_round_trips) {
  LIST(silent, SILENT(1), SILENT(2), SILENT(3), SILENT(4), SILENT(5), SILENT(6), SILENT(7), SILENT(8));
  LIST(many, GK_DO_WHILE(LEFT), GK_RUN(add, N, X, A), GK_RUN(decrease, GK_ONE, LEFT), GK_END);
  int *x = int_on(device, 0), *left = int_on(device, 50);
  gk_graph *graph = NEW_GRAPH(device, &silent, 0, {X, x}, {FLAG, int_on(device, 0)});
  run_to_end(graph, 0);
  const simgpu_counts counts = counts_of_light_launch(graph);
  assert_int_equal(sim->calls("cuGraphLaunch"), 8);
  assert_int_equal(sim->calls("cuEventRecord"), 1);
  assert_int_equal(counts.copies, 2); /* of the state: to the device, and back */
  graph = NEW_GRAPH(device, &many, 0, {X, x}, {LEFT, left});
  static const uint64_t most[] = {7, 2}; /* 1 pass, then up to 2, 4, 8, 16, 32; then as many as the last time */
  for (int k = 0; k < 2; ++k) {
    set_int(device, left, 50);
    counts_of_light_launch(graph);
    assert_in_range(sim->calls("cuEventRecord"), 1, most[k]);
    assert_in_range(sim->calls("cuGraphLaunch"), 50, 128);
  }
  ASSERT_VALUES({x, 2 * 8 + 2 * 50}, {left, 0});
}

TEST_ON_CUDA(test_dump_says_ahead) {
  gk_graph *graphs[] = {new_graph(device, &looping, 0), new_graph(device, &looping, GK_HOST_GATED),
                        new_graph(device, &straight, 0)};
  for (size_t k = 0; k < GK_COUNT(graphs); ++k) {
    char *text = gk_dump(NULL, graphs[k], "text"), *json = gk_dump(NULL, graphs[k], "json");
    assert_int_equal(strstr(text, "behind each run: gki_ahead") != NULL, k == 0);
    assert_int_equal(strstr(json, "\", \"ahead\": true, \"graphs\": [") != NULL, k == 0);
    gk_free_text(text);
    gk_free_text(json);
  }
}

/* A bad count doesn't change the number that gates are compared with. */
TEST_ON_CUDA(test_goes_ahead_after_a_bad_count) {
  LIST(list, GK_DO_WHILE(LEFT), GK_IF(FLAG), GK_RUN(add, N, X, A), GK_END, GK_RUN(decrease, GK_ONE, LEFT), GK_END,
       GK_FILL(Y, BYTE, 1));
  int *x = int_on(device, 0), *left = int_on(device, 0), *flag = int_on(device, 0);
  gk_graph *graph = NEW_GRAPH(device, &list, 0, {X, x}, {Y, int_on(device, 0)}, {LEFT, left}, {FLAG, flag});
  for (int k = 0; k < 3; ++k) {
    SET_VALUES({left, 3}, {flag, 0});
    BIND_INTS(graph, {BYTE, 2});
    assert_int_equal(waited_for(graph, 0), GK_ERROR_INVALID);
    BIND_INTS(graph, {BYTE, 1});
    SET_VALUES({left, 3}, {flag, k});
    run_to_end(graph, 0);
    ASSERT_VALUES({x, 3 * k}, {left, 0}); /* a flag is true or not */
  }
}
#endif

TEST_ON_CUDA(test_queue) {
  LIST(list, GK_RUN(apply, N, X, LINE));
  check_queue(device, new_graph(device, &list, BITS | GK_NONBLOCKING), X, LINE);
  check_waiting(device, new_graph(device, &list, BITS), X, LINE);
}

/* Sections may come in any order, and the task behind them waits for all of them. */
TEST_ON_CUDA(test_sections_are_branches) {
  LIST(list, GK_FILL(X, GK_ONE, 0), GK_FILL(Y, GK_ONE, 1),
       GK_PARALLEL,
         GK_SECTION, GK_CALL(fill_bytes, X, BYTE), GK_CALL(do_nothing, 0), GK_END,
         GK_SECTION, GK_COPY(Y, FLAG, GK_ONE), GK_PARALLEL, GK_SECTION, GK_RUN(add, N, Y, A), GK_END,
                                               GK_SECTION, GK_RUN(decrease, GK_ONE, LEFT), GK_END, GK_END, GK_END,
       GK_END,
       GK_RUN(total, GK_ONE, X, Y), GK_RUN(total, GK_ONE, LEFT, Y));
  int *y = int_on(device, 9), *left = int_on(device, 1000);
  gk_graph *graph = NEW_GRAPH(device, &list, BITS, {X, int_on(device, 9)}, {Y, y}, {FLAG, int_on(device, 4)},
                              {LEFT, left});
  gk_bind_int(graph, A, 20);
  for (int k = 0; k < 30; ++k) {
    sim->set_seed((uint64_t)k);
    gk_bind_int(graph, BYTE, k % 3);
    set_int(device, left, 1000);
    run_to_end(graph, 0);
    assert_int_equal(sim->broken(), 0);
    ASSERT_VALUES({y, 4 + 20 + 999 + 0x01010101 * (k % 3)});
  }
}

/* Memory that gk doesn't see: the call's own. */
static int *hidden;
CALLED(clear_hidden) {
  fill_on(stream, hidden, 0);
  return GK_OK;
}

/* Sections come in any order: the graph says no more than the list. */
TEST_ON_CUDA(test_order_is_left_open) {
  LIST(list, GK_PARALLEL, GK_SECTION, GK_COPY(X, Y, GK_ONE), GK_END,
       GK_SECTION, GK_CALL(clear_hidden, 0), GK_END, GK_END);
  int *x = int_on(device, 0), times[2] = {0};
  hidden = int_on(device, 0);
  gk_graph *graph = NEW_GRAPH(device, &list, BITS, {X, x}, {Y, hidden});
  for (int k = 0; k < 40; ++k) {
    sim->set_seed((uint64_t)k);
    set_int(device, hidden, 5);
    run_to_end(graph, 0);
    ++times[int_at(device, x) == 5];
  }
  assert_true(times[0] > 0 && times[1] > 0);
}

TEST_ON_CUDA(test_calls_are_recorded) {
  LIST(list, GK_DO_WHILE(LEFT), GK_RUN(add, N, X, A), GK_CALL(fill_bytes, X, BYTE), GK_CALL(do_nothing, 0),
       GK_RUN(add, N, X, A), GK_RUN(decrease, GK_ONE, LEFT), GK_END, GK_CALL(do_nothing, 0));
  int *x = int_on(device, 0), *left = int_on(device, 5);
  called = 0;
  gk_graph *graph = NEW_GRAPH(device, &list, BITS, {X, x}, {LEFT, left});
  BIND_INTS(graph, {BYTE, 1}, {A, 2});
  assert_int_equal(called, 0); /* the values aren't known yet */
  run_to_end(graph, 0);
  assert_int_equal(called, 3);
  ASSERT_VALUES({x, 0x01010103});
  set_int(device, left, 2);
  gk_bind_int(graph, A, 3);
  counts_of_light_launch(graph);
  assert_int_equal(called, 3);
  ASSERT_VALUES({x, 0x01010104});
  set_int(device, left, 1);
  gk_bind_int(graph, BYTE, 2);
  run_to_end(graph, 0);
  assert_int_equal(called, 6);
  ASSERT_VALUES({x, 0x02020205});
}

/* Alternates on one stream with a graph whose end no event marks. */
TEST_ON_CUDA(test_beside_another_graph) {
  int *x[2], *left[2];
  gk_graph *graphs[2];
  for (int k = 0; k < 2; ++k) {
    x[k] = int_on(device, 0);
    left[k] = int_on(device, 0);
    graphs[k] = NEW_GRAPH(device, &looping, k ? 0 : BITS, {X, x[k]}, {LEFT, left[k]});
  }
  for (int k = 0; k < 40; ++k) {
    SET_VALUES({left[0], 2}, {left[1], 3});
    assert_ok(gk_launch(graphs[k & 1], 0));
    assert_ok(gk_launch(graphs[~k & 1], 0));
    assert_ok(gk_wait(graphs[k / 2 & 1], NULL));
    assert_ok(gk_wait(graphs[~(k / 2) & 1], NULL));
  }
  ASSERT_VALUES({x[0], 80}, {x[1], 120});
}

/* The host can read page-locked memory at any time, but a launch before may write the flag. */
TEST_ON_CUDA(test_flag_from_another_graph) {
  LIST(writing, GK_FILL(FLAG, GK_ONE, 1));
  LIST(reading, GK_IF(FLAG), GK_RUN(add, N, X, A), GK_END);
  int *x = int_on(device, 0), *flag = gk_alloc(device, sizeof *flag, GK_HOST_MEMORY);
  gk_graph *writer = NEW_GRAPH(device, &writing, 0, {FLAG, flag});
  gk_graph *reader = NEW_GRAPH(device, &reading, BITS, {FLAG, flag}, {X, x});
  *flag = 0;
  run_to_end(reader, 0); /* the next launch has nothing to send to the device */
  for (int k = 0; k < 3; ++k) {
    *flag = 0;
    sim->hold(true);
    sim->mark();
    assert_ok(gk_launch(writer, 0));
    assert_ok(gk_launch(reader, 0));
    gk_result early;
    while ((early = gk_poll(reader, NULL)) == GK_NOT_READY && !sim->calls("cuEventQuery")) usleep(100);
    sim->hold(false);
    assert_int_equal(early, GK_NOT_READY); /* also if it has no task to run: it ends behind the launch before */
    assert_ok(gk_wait(reader, NULL));
    assert_int_equal(*flag, 1);
    assert_ok(gk_wait(writer, NULL));
    ASSERT_VALUES({x, k + 1});
  }
}

TEST_ON_CUDA(test_cancel) {
  LIST(list, GK_DO_WHILE(FLAG), GK_RUN(add, N, X, A), GK_END);
  int *flag = int_on(device, 1);
  gk_graph *graph = NEW_GRAPH(device, &list, BITS | GK_CANCELLABLE, {X, int_on(device, 0)}, {FLAG, flag});
  assert_ok(gk_launch(graph, 0));
  assert_ok(gk_launch(graph, 0));
  assert_int_equal(gk_poll(graph, NULL), GK_NOT_READY);
  assert_ok(gk_cancel(graph));
  const gk_status *status;
  assert_ok(gk_wait(graph, &status));
  assert_int_equal(status->state, GK_CANCELLED);
  set_int(device, flag, 0);
  assert_int_equal(run_to_end(graph, 0)->state, GK_FINISHED);
}

static char logged[4096];

static void keep_line(UNUSED void *user, UNUSED gk_log_level level,
                      const char *text) {
  if (strstr(text, "gated by the host")) snprintf(logged, sizeof logged, "%s", text);
}

TEST_ON_CUDA(test_reason_is_told) {
  LIST(list, GK_DO_WHILE(LEFT), GK_RUN(decrease, GK_ONE, LEFT), GK_END);
  gk_set_log(GK_LOG_INFO, keep_line, NULL);
  (void)new_graph(device, &list, BITS);
  assert_non_null(strstr(logged, IS_OLD ? "the driver is for CUDA " VERSION : "GK_HOST_GATED asks for it"));
  (void)new_graph(device, &straight, GK_ISOLATE);
  assert_non_null(strstr(logged, "GK_ISOLATE"));
  gk_set_log(GK_LOG_WARN, NULL, NULL);
  const gk_capability *loop = capability_of(device, "DO_WHILE"), *copy = capability_of(device, "COPY");
  assert_int_equal(loop->how, IS_OLD ? GK_BATCHED : GK_NATIVE);
  assert_int_equal(copy->how, GK_NATIVE);
  if (!IS_OLD) return;
  assert_non_null(strstr(loop->why, "the driver is for CUDA " VERSION));
  assert_non_null(strstr(copy->why, "compiled by NVRTC"));
  assert_int_equal(capability_of(device, "PARALLEL")->how, GK_IN_SERIES);
}

/* A device that gk believes to reach all memory of the host. */
static gk_device *open_credulous(void) {
  sim->allow("pageable");
  gk_device *device = new_device("cuda", 0);
  sim->allow(NULL);
  return device;
}

/* After a fault: a failed context is gone when no device uses it any more. */
static void close_all(void **state) {
  discard_all();
  gk_device_close(*state);
  *state = NULL;
  sim->forgive();
}

/* With GK_ISOLATE the message names the task that faults, without it the tasks up to it. */
TEST_ON_CUDA(test_fault_names_the_task) {
  LIST(list, GK_RUN(add, N, X, A), GK_RUN(decrease, GK_ONE, Y), GK_RUN(add, N, X, A));
  for (int isolate = 0; isolate < 2; ++isolate) {
    device = open_credulous();
    gk_graph *graph = NEW_GRAPH(device, &list, isolate ? GK_ISOLATE : GK_HOST_GATED,
                                {X, int_on(device, 0)}, {Y, (void *)(uintptr_t)0x1000});
    assert_int_equal(waited_for(graph, 0), GK_ERROR_DEVICE);
    assert_says(isolate ? "waiting for task 1 (decrease) of graph list"
                        : "waiting for the device, at tasks 0 (add) to 2 (add) of graph list or an earlier task "
                          "(GK_ISOLATE tells which)");
    assert_says("CUDA_ERROR_ILLEGAL_ADDRESS");
    close_all(state);
  }
}

#ifndef OLD
/* A graph that was launched before, on any stream, and wasn't waited for: no task of the isolated one is named. */
TEST_ON_CUDA(test_fault_of_another_graph) {
  LIST(bad, GK_RUN(decrease, GK_ONE, Y));
  for (int on_stream = 0; on_stream < 2; ++on_stream) {
    device = open_credulous();
    gk_graph *first = NEW_GRAPH(device, &bad, 0, {Y, (void *)(uintptr_t)0x1000});
    gk_graph *isolated = NEW_GRAPH(device, &straight, GK_ISOLATE, {X, int_on(device, 0)});
    sim->hold(1);
    assert_ok(on_stream ? gk_launch_on(first, 0, NULL) : gk_launch(first, 0));
    const uint64_t follows = sim->calls("cuStreamWaitEvent");
    assert_ok(gk_launch(isolated, 0));
    if (on_stream) await(sim->calls("cuStreamWaitEvent") > follows); /* the work on the caller's stream */
    sim->hold(0);
    assert_fails(GK_ERROR_DEVICE, "CUDA_ERROR_ILLEGAL_ADDRESS", gk_wait(isolated, NULL));
    if (strstr(gk_error(), "(add)")) fail_msg("%s", gk_error());
    close_all(state);
  }
}
#endif

static gk_result make_calling(gk_device *device, gk_graph **graph) {
  LIST(list, GK_CALL(do_nothing, 0));
  return gk_graph_create(device, &list, BITS, graph);
}

/* The driver says only at the end that the call left a forked stream, or ended the capture itself. */
TEST_ON_CUDA(test_capture_ends_badly) {
  static const CUresult codes[] = {CUDA_ERROR_STREAM_CAPTURE_UNJOINED, CUDA_ERROR_ILLEGAL_STATE};
  for (size_t c = 0; c < GK_COUNT(codes); ++c) {
    gk_graph *graph;
    assert_invalid("task 0 (do_nothing): what the call did can't be recorded",
                 fail_entry(device, "cuStreamEndCapture", codes[c], make_calling, &graph));
    sim->mark();
    gk_graph_destroy(graph);
  }
}

static int *memory; /* X, Y, LEFT, FLAG */

static void fill_memory(gk_device *device) {
  assert_ok(gk_upload(device, memory, (const int[]){7, 7, 2, 0}, 4 * sizeof *memory));
}

static void assert_done(gk_device *device) { ASSERT_INTS(memory, 0, 1 + 3 * 10, 0, 0); }

/* The first result that isn't GK_OK. */
static gk_result try_many(gk_device *device, gk_graph **graph) {
  LIST(list, GK_FILL(X, GK_ONE, 1), GK_COPY(Y, X, GK_ONE),
       GK_PARALLEL, GK_SECTION, GK_CALL(fill_bytes, X, BYTE), GK_END, GK_SECTION, GK_RUN(add, N, Y, A), GK_END, GK_END,
       GK_DO_WHILE(LEFT), GK_CHECKPOINT(HERE, FLAG), GK_RUN(add, N, Y, A), GK_END, GK_RUN(decrease, GK_ONE, LEFT),
       GK_END);
  gk_result result = gk_graph_create(device, &list, BITS, graph);
  if (result != GK_OK) return result;
  BIND(*graph, {X, memory}, {Y, memory + 1}, {LEFT, memory + 2}, {FLAG, memory + 3});
  BIND_INTS(*graph, {BYTE, 0}, {A, 10});
  gk_bind_bytes(*graph, LINE, &(line){1, 1}, sizeof(line));
  return run_on_stream(*graph, 0, NULL);
}

static void check_outcome(gk_device *device, gk_graph *graph, gk_result result, const char *failed) {
  if (result != GK_OK) {
    assert_non_null(failed);
    assert_int_equal(result, GK_ERROR_DEVICE);
    if (!strstr(gk_error(), "the call answered GK_ERROR_DEVICE")) assert_says("CUDA_ERROR_UNKNOWN");
  } else {
    assert_done(device);
  }
  fill_memory(device);
  if (!graph) return;
  run_to_end(graph, 0); /* it works once the driver does */
  assert_done(device);
  fill_memory(device);
}

TEST_ON_CUDA(test_every_call_fails) {
  gk_graph *graph = NULL;
  memory = zeros(device, 4);
  fill_memory(device);
  assert_ok(try_many(device, &graph)); /* its kernels stay loaded while one of their graphs exists */
  assert_done(device);
  fill_memory(device);
  fail_each_call(device, try_many, check_outcome);
  gk_graph_destroy(graph);
}

/* While the device is opened, with the kernels that are compiled then. */
TEST_ON_CUDA(test_opening_fails) {
  gk_device_close(device);
  *state = NULL;
  const char *failed = "";
  for (uint64_t k = 1; failed; ++k) {
    gk_device *opened = NULL;
    fail_call(k, CUDA_ERROR_OUT_OF_MEMORY);
    const gk_result result = gk_device_open(&(gk_device_desc){.backend = "cuda"}, &opened);
    failed = failed_call();
    assert_true(result == GK_OK || opened == NULL);
    gk_device_close(opened);
    assert_int_equal(sim->alive(SIMGPU_ALL), 0);
    assert_int_equal(sim->broken(), 0);
  }
}

int main(UNUSED int count, char **words) {
  setenv("SIMGPU_VERSION", VERSION, 1);
  setenv("GK_TAPE_MS", "100000", 1);
  return run_on_simgpu(words);
}
